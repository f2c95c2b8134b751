"""The Tab key goes through the window as it is read: from top to bottom, in a row from left to right.

Qt goes by the order in which widgets were made. Views here are made when they are first seen, and cards whenever the
plan changes, so that they would all come last.
"""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QRadioButton, QScrollArea, QWidget


def stops(root: QWidget) -> list[QWidget]:
    """Visible widgets below ``root`` at which Tab stops, in reading order."""
    return [w for w in _walk(root) if _is_stop(w)]


def step(root: QWidget, forward: bool) -> bool:
    """Move the focus to the next or the previous stop, around the ends; False where there is none."""
    order = stops(root)
    if not order:
        return False
    at: QWidget | None = root.focusWidget()
    while at is not None and at not in order:  # part of a stop, as the field of a box with numbers
        at = at.parentWidget()
    if at is None:
        target = order[0 if forward else -1]
    else:
        target = order[(order.index(at) + (1 if forward else -1)) % len(order)]
    focus(target, Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason)
    return True


def step_pane(panes: list[QWidget], focused: QWidget | None, offset: int) -> None:
    """Move the focus into the next or the previous of the panes that are seen, to its first stop."""
    seen = [pane for pane in panes if pane.isVisible()]
    if not seen:
        return
    inside = [
        k for k, pane in enumerate(seen) if focused is not None and (pane is focused or pane.isAncestorOf(focused))
    ]
    pane = seen[(inside[0] + offset) % len(seen)] if inside else seen[0]
    target = pane if _is_stop(pane) else next(iter(stops(pane)), None)
    if target is not None:
        focus(target, Qt.FocusReason.ShortcutFocusReason)


def focus(target: QWidget, reason: Qt.FocusReason) -> None:
    """Give the focus to a widget, and bring it into view."""
    target.setFocus(reason)
    at = target.parentWidget()
    while at is not None:
        if isinstance(at, QScrollArea) and at is not target:
            at.ensureWidgetVisible(target)
        at = at.parentWidget()


def _is_stop(widget: QWidget) -> bool:
    if not widget.focusPolicy() & Qt.FocusPolicy.TabFocus or not widget.isEnabled() or widget.focusProxy() is not None:
        return False
    if isinstance(widget, QRadioButton) and widget.autoExclusive() and not widget.isChecked():
        group, parent = widget.group(), widget.parentWidget()
        others = (
            group.buttons() if group is not None else parent.findChildren(QRadioButton) if parent is not None else []
        )
        return not any(other.isChecked() for other in others)  # arrows go to the others of a choice
    return True


def _walk(widget: QWidget) -> Iterator[QWidget]:
    children = [c for c in widget.children() if isinstance(c, QWidget) and c.isVisible() and not c.isWindow()]
    for row in _rows(children):
        for child in row:
            yield child
            yield from _walk(child)


def _rows(children: list[QWidget]) -> list[list[QWidget]]:
    """Children in rows: one whose middle is above the lowest edge of a row stands in it."""
    rows: list[list[QWidget]] = []
    bottom = 0
    for child in sorted(children, key=lambda c: c.y()):
        if rows and child.geometry().center().y() < bottom:
            rows[-1].append(child)
        else:
            rows.append([child])
            bottom = 0
        bottom = max(bottom, child.geometry().bottom())
    return [sorted(row, key=lambda c: c.x()) for row in rows]
