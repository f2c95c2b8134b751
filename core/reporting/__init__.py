"""What the headless commands print: JSON, text and one self-contained page."""
