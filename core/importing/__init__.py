"""From files to frozen tables; the only part that ever sees an event as a dict."""

from core.importing.opening import open_trace

__all__ = ["open_trace"]
