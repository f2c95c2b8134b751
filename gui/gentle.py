"""Slow listeners of one signal, called one in each turn of the event loop where that is wanted."""

from __future__ import annotations

import sys
from collections.abc import Callable
from weakref import WeakMethod

from PySide6.QtCore import QObject, QTimer
from shiboken6 import isValid

TURN_MS = 1  # a timer, not an event: what was changed is painted, and the user is heard, before the next one comes


class Listeners:
    """Methods of QObjects; one whose object is gone is left out.

    Parameters
    ----------
    owner
        What the waiting calls end with.
    """

    def __init__(self, owner: QObject) -> None:
        self._owner = owner
        self._methods: list[WeakMethod[Callable[[], None]]] = []
        self._waiting: list[WeakMethod[Callable[[], None]]] = []
        self.gently = False  # one call in each turn, so that the window can do something else in between

    def add(self, method: Callable[[], None]) -> None:
        """Take up a bound method."""
        self._methods.append(WeakMethod(method))

    def call(self) -> None:
        """Call all of them, now or bit by bit; those that still waited are not called twice."""
        self._methods = [held for held in self._methods if held() is not None]
        under_way = bool(self._waiting)
        self._waiting = list(self._methods)
        if not self.gently:
            while self._waiting:
                self._next()
        elif not under_way:
            QTimer.singleShot(0, self._owner, self._begin)

    def _begin(self) -> None:
        """Let what has changed at once be painted: that is waiting behind the event which called this."""
        QTimer.singleShot(TURN_MS, self._owner, self._turn)

    def _turn(self) -> None:
        if self._waiting:
            self._next()
        if self._waiting:
            QTimer.singleShot(TURN_MS, self._owner, self._turn)

    def _next(self) -> None:
        method = self._waiting.pop(0)()
        receiver = getattr(method, "__self__", None)
        if method is None or (isinstance(receiver, QObject) and not isValid(receiver)):
            return
        try:
            method()
        except Exception:  # as with a signal: the others are called all the same
            sys.excepthook(*sys.exc_info())
