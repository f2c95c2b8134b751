"""What a file says of a view is believed only as far as it fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from gui.session import Document, Session
from gui.timeline.prepared import prepare
from gui.timeline.view import TimelineView
from tests.gui.conftest import training

ODD: tuple[Any, ...] = (
    [],
    {},
    [[1]],
    {"a": []},
    [{}],
    "x",
    -1,
    10**400,
    1.5,
    None,
    True,
    [None, 3, "x"],
    {"x": 10**400},
)


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_a_state_of_odd_values_is_left_out(qtbot: QtBot, tmp_path: Path, odd: Any) -> None:
    document = Document(training().build(tmp_path / "train.json"))
    document.prepared = prepare(document.trace)
    view = TimelineView(Session(), document)
    qtbot.addWidget(view)
    view.resize(900, 500)
    state = view.state()
    for key in state:
        view.restore_state({**state, key: odd})
        inner = state[key]
        if isinstance(inner, dict):
            for name in inner:
                view.restore_state({**state, key: {**inner, name: odd}})
    view.grab()
    view.restore_state(dict.fromkeys(state, odd))
    view.grab()
