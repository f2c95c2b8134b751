"""From bytes to frozen column tables; the only code that ever sees an event dict."""
