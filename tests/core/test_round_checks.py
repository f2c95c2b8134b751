"""Losses of rounds are compared only where chance lets them be: a seed, or runs of the same code that agree."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from core.judging import is_same_code
from core.moved_run import changed_since
from core.project import Figures, Iteration, Project, load_project
from core.round_checks import checks_of
from core.run_folder import read_run
from gui import round_words

CURVES = ([1.0, 0.5], [0.9, 0.7], [0.8, 0.6])


def run(folder: Path, losses: list[float], source: str) -> str:
    (folder / "sources").mkdir(parents=True)
    (folder / "sources" / "train.py").write_text(source)
    sources = [{"path": str(folder / "train.py"), "copy": "sources/train.py"}]
    (folder / "run.json").write_bytes(orjson.dumps({"format": "steplens.run/1", "sources": sources}))
    (folder / "losses.json").write_bytes(orjson.dumps({"format": "steplens.losses/1", "values": losses}))
    return str(folder)


def rounds(folder: Path, source: str) -> Project:
    """A baseline, a fix of it, and the baseline measured again."""
    first, fixed, again = (run(folder / str(n), losses, source) for n, losses in enumerate(CURVES))
    return Project(
        folder / "p",
        "train.py",
        (Iteration(0, first, 1.0), Iteration(1, fixed, 2.0, 0, copy="copies/1"), Iteration(2, again, 3.0, 0, again=0)),
    )


@pytest.mark.parametrize(
    ("source", "chance", "repeated"),
    [("train()", "no_seed", None), ("torch.manual_seed(1)", "repeated", (0, 2))],
)
def test_what_chance_decides_is_not_compared(
    tmp_path: Path, source: str, chance: str, repeated: tuple[int, int] | None
) -> None:
    checks = checks_of(rounds(tmp_path, source))
    assert checks[0].status == "unknown"
    assert [(checks[n].status, checks[n].chance, checks[n].repeated) for n in (1, 2)] == [
        ("differs", chance, repeated)
    ] * 2


def test_a_seeded_script_without_a_second_run_of_its_code_is_compared(tmp_path: Path) -> None:
    project = rounds(tmp_path, "torch.manual_seed(1)")
    check = checks_of(replace(project, iterations=project.iterations[:2]))[1]
    assert (check.status, check.chance) == ("differs", "")


def test_where_the_code_before_ran_twice_and_agreed_the_fix_made_the_difference(tmp_path: Path) -> None:
    project = rounds(tmp_path, "torch.manual_seed(1)")
    Path(project.iterations[2].run_folder, "losses.json").write_bytes(
        Path(project.iterations[0].run_folder, "losses.json").read_bytes()
    )
    check = checks_of(project)[1]
    assert (check.status, check.chance, check.repeated) == ("differs", "", (0, 2))
    words = round_words.verdict(_timed(project), checks_of(project), 1)
    assert "Rounds 0 and 2 ran the code before and came to the same losses: it is the fix" in words


def _timed(project: Project) -> Project:
    """The rounds with step times, which a verdict needs."""
    figures = Figures(sustained_ns=1e6)
    return replace(project, iterations=tuple(replace(i, figures=figures) for i in project.iterations))


def test_the_same_code_is_a_copy_or_the_users_file_run_again(tmp_path: Path) -> None:
    first, fixed, again = rounds(tmp_path, "").iterations
    assert is_same_code(first, again)
    assert is_same_code(again, replace(again, number=5))
    assert is_same_code(fixed, replace(fixed, number=4))
    assert not is_same_code(first, fixed)
    assert not is_same_code(first, replace(first, number=3))  # profiled anew: the file may be another
    assert not is_same_code(first, replace(again, again=None))


def test_which_round_was_run_again_is_kept_under_its_new_number(tmp_path: Path) -> None:
    project = rounds(tmp_path, "")
    project.save()
    assert load_project(project.folder).iterations == project.iterations  # type: ignore[union-attr]
    other = Project(project.folder, "train.py", (Iteration(0, "", 9.0),))
    merged = other.with_others()
    assert [(i.number, i.parent, i.again) for i in merged.iterations] == [
        (0, None, None),
        (1, None, None),
        (2, 1, None),
        (3, 1, 1),
    ]


def test_files_that_changed_since_a_run_are_named(tmp_path: Path) -> None:
    record = read_run(Path(run(tmp_path / "r", [1.0], "as it was")))
    assert record is not None
    own = tmp_path / "r" / "train.py"
    assert changed_since(record) == (str(own),)  # it is gone
    own.write_text("as it was")
    assert changed_since(record) == ()
    own.write_text("otherwise")
    assert changed_since(record) == (str(own),)
