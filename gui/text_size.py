"""How large the texts of the window are: one factor over the desktop's own size, remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtGui import QFont, QGuiApplication
from PySide6.QtWidgets import QApplication

from gui import theme

if TYPE_CHECKING:
    from gui.session import Session
    from gui.settings import Settings

KEY = "appearance/text_size"
PERCENTS = (80, 90, 100, 110, 125, 150, 175, 200)
HUGE_PX, HUGE_PERCENT = 1900, 125
_BASE = "steplens_points"  # property of the application: the desktop's size, points
_FACTOR = "steplens_text_scale"


def factor() -> float:
    """Factor that texts have now; 1 without an application."""
    app = QApplication.instance()
    value = app.property(_FACTOR) if app is not None else None
    return float(value) if value else 1.0


def px(size: float) -> int:
    """Pixels of something that holds text and has so many at 100 %."""
    return round(size * factor())


def nearest(percent: int) -> int:
    """Return the size of the list that comes closest; what a settings file says may be anything."""
    return min(PERCENTS, key=lambda p: abs(p - percent))


def automatic(height_px: int) -> int:
    """Size where the user has chosen none: larger on a screen (or picture) so high that the desktop's looks lost."""
    return HUGE_PERCENT if height_px >= HUGE_PX else 100


def chosen(settings: Settings, height_px: int = 0) -> int:
    """Percentage that the user has chosen, else the automatic one for a height (0: of the screen)."""
    percent: int = settings.get(KEY)
    if percent > 0:
        return nearest(percent)
    return automatic(height_px or QGuiApplication.primaryScreen().availableGeometry().height())


def next_of(percent: int, offset: int) -> int:
    """Size some places further in the list, the last one where it ends."""
    at = PERCENTS.index(nearest(percent)) + offset
    return PERCENTS[min(max(at, 0), len(PERCENTS) - 1)]


def choose(session: Session, settings: Settings, percent: int) -> int:
    """Give all texts a size and keep it; 0 is the automatic one. Returns the percentage they have now."""
    settings.set(KEY, nearest(percent) if percent > 0 else 0)
    percent = chosen(settings)
    apply(percent / 100.0)
    session.set_text_scale(percent / 100.0)
    return percent


def apply(scale: float) -> None:
    """Give the application's font and those that widgets have of their own another size."""
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    base = app.property(_BASE)
    if not base:
        base = app.font().pointSizeF()
        app.setProperty(_BASE, base)
    before = factor()
    app.setProperty(_FACTOR, scale)
    if scale == before:
        return
    font = QFont(app.font())
    font.setPointSizeF(base * scale)
    theme.restyle_all(app, app.styleSheet(), lambda: app.setFont(font), larger=scale / before)
