"""Package data: icons, themes, samples."""
