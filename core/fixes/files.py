"""Proposed edits made real: in a copy of the sources by default, in the user's file only when asked."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from core.errors import TraceError
from core.files import clear_parts, is_left, maker, write_atomically
from core.fixes.encodings import encoded, read_source
from core.fixes.leftovers import part_folder
from core.fixes.propose import ProposedEdit

LARGEST_COPY_BYTES = 2_000_000  # a bigger file is data: linked, not copied
MOST_FILES = 20_000
NOTE_END, NOTE_FORMAT = ".applied.json", "steplens.applied/1"
MAKING_S = 60.0  # a change takes a moment: what is younger may be one that another window is making
SKIPPED = {"__pycache__", "node_modules", "site-packages", "wandb", "mlruns"}


# In a copy ----------------------------------------------------------------------------------------------------


def apply_to_copy(edits: Iterable[ProposedEdit], root: Path, target: Path) -> tuple[Path, ...]:
    """Copy a source tree into a new folder and make the edits there; the tree itself is not touched.

    Python files and other small texts are copied; data and large files are linked, so that the script still finds
    them beside itself. Caches, hidden folders and virtual environments are left out.

    Parameters
    ----------
    edits
        Edits of files below ``root``; several of one file must build on one another (``before`` of the second is
        ``after`` of the first).
    root
        Folder that holds the user's script.
    target
        Folder to be made (a new one).

    Returns
    -------
    tuple[Path, ...]
        The edited files in the copy.

    Raises
    ------
    TraceError
        When the target exists, an edit is not of this tree, or its file has changed since it was proposed.
    """
    root, edits = root.resolve(), list(edits)
    if target.exists():
        raise TraceError(f"{target}: exists already.", hint="Choose a new folder.")
    texts: dict[Path, str] = {}
    for edit in edits:
        path = edit.path.resolve()
        if not path.is_relative_to(root):
            raise TraceError(f"{edit.path} is not below {root}.")
        if path not in texts:
            texts[path] = read_source(path)
        if texts[path] != edit.before:
            raise TraceError(f"{edit.path} has changed since the run.", hint="Run it again, then apply the fix.")
        texts[path] = edit.after
    target.parent.mkdir(parents=True, exist_ok=True)
    part = part_folder(target)
    try:  # whole or not at all: a copy that is there was made to its end
        part.chmod(root.stat().st_mode & 0o777 | 0o700)
        _copy_tree(root, part.resolve(), _Budget(MOST_FILES))
        _lead_links(root, part, [path.relative_to(root) for path in texts])
        for path, text in texts.items():
            place = part / path.relative_to(root)
            place.parent.mkdir(parents=True, exist_ok=True)
            if place.is_symlink():
                place.unlink()
            write_atomically(place, encoded(text, path))
        part.rename(target)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return tuple(target / path.relative_to(root) for path in texts)


def unchanged(edits: Iterable[ProposedEdit]) -> None:
    """Check that the files of a chain of edits are as they were when it was derived.

    Raises
    ------
    TraceError
        Naming the first file that is not.
    """
    seen: set[Path] = set()
    for edit in edits:
        if edit.path not in seen and read_source(edit.path) != edit.before:
            raise TraceError(f"{edit.path} has changed since the run.", hint="Run it again, then apply the fix.")
        seen.add(edit.path)


@dataclass
class _Budget:
    files: int


def _copy_tree(source: Path, target: Path, budget: _Budget) -> None:
    for entry in sorted(os.scandir(source), key=lambda e: e.name):
        path, place = Path(entry.path), target / entry.name
        if entry.name.startswith(".") or entry.name in SKIPPED or path == target or target.is_relative_to(path):
            continue
        budget.files -= 1
        if budget.files < 0:
            raise TraceError(
                f"{source} holds too many files to copy.",
                hint="Keep the script in a folder of its own, or apply there.",
            )
        if entry.is_symlink() and not os.path.exists(path):  # it leads nowhere, or in a circle
            continue
        if entry.is_dir(follow_symlinks=False):
            if (path / "pyvenv.cfg").exists():
                continue
            if _holds_sources(path):
                place.mkdir()
                _copy_tree(path, place, budget)
            else:
                _link(path, place)
        elif entry.is_file() and entry.stat().st_size <= LARGEST_COPY_BYTES:
            shutil.copy2(path, place)
        elif entry.is_file() or entry.is_dir():
            _link(path, place)


def _lead_links(root: Path, copy: Path, edited: Iterable[Path]) -> None:
    """Have what is a link in the tree to an edited file, or to a folder with one, lead to that of the copy."""
    wanted = {place for path in edited for place in (path, *path.parents) if place.parts}
    for folder, folders, files in os.walk(root):
        there = copy / Path(folder).relative_to(root)
        names = [*folders, *files]
        folders[:] = [f for f in folders if (there / f).is_dir() and not (there / f).is_symlink()]  # no data
        for name in names:
            path, place = Path(folder, name), there / name
            if not path.is_symlink() or not os.path.lexists(place):
                continue
            real = Path(os.path.realpath(path))  # a link in a circle is no error of this one
            if real.is_relative_to(root) and real.relative_to(root) in wanted:
                place.unlink()
                to = os.path.relpath(copy / real.relative_to(root), place.parent)
                place.symlink_to(to, target_is_directory=real.is_dir())


def _holds_sources(folder: Path, most: int = 2000) -> bool:
    """Whether there is Python below a folder; looks at the first files only."""
    seen = 0
    for _, folders, files in os.walk(folder):
        folders[:] = [f for f in folders if not f.startswith(".") and f not in SKIPPED]
        if any(f.endswith((".py", ".pyi")) for f in files):
            return True
        seen += len(files) + len(folders)
        if seen > most:
            return False
    return False


def _link(path: Path, place: Path) -> None:
    try:
        place.symlink_to(path, target_is_directory=path.is_dir())
    except OSError:  # no links here (Windows without the right): the script misses the file and says so
        if path.is_file():
            with contextlib.suppress(OSError):
                os.link(path, place)


# In the user's file -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AppliedEdit:
    """An edit made in the user's file, and the way back."""

    edit: ProposedEdit
    backup: Path
    keys: tuple[str, ...] = ()  # of the suggestions that it was made for

    @property
    def note(self) -> Path:
        """File beside the backup that says where it belongs, so that the change can be undone in a later session."""
        return self.backup.with_name(self.backup.name + NOTE_END)

    def undo(self) -> None:
        """Put the old text back; nothing is done where another window has done it already.

        Raises
        ------
        TraceError
            When the file has been changed since; it is then left as it is, and the backup stays.
        """
        data, kept = self._data(), self._kept()
        before, after = (self._encoded(text) for text in (self.edit.before, self.edit.after))
        if data != before:
            if data != after:
                raise TraceError(
                    f"{self.edit.path} has been changed since the fix was applied; nothing is undone.",
                    hint=f"The text before the fix is kept in {self.backup}." if kept is not None else "",
                )
            write_atomically(self.edit.path, next(d for d in (kept, before, data) if d is not None))
        clear_parts(self.edit.path)
        self.forget()

    def forget(self) -> None:
        """Remove the backup; its note last, so that there is none without one however this ends."""
        with contextlib.suppress(OSError):  # in a folder that cannot be written: it is undone all the same
            self.backup.unlink(missing_ok=True)
            self.note.unlink(missing_ok=True)

    @property
    def is_taken_back(self) -> bool:
        """Whether the file has its old text again, by whatever means; False where it cannot be read."""
        try:
            return self._data() == self._encoded(self.edit.before)
        except (OSError, TraceError):
            return False

    def _data(self) -> bytes:
        return self.edit.path.read_bytes() if self.edit.path.exists() else b""

    def _kept(self) -> bytes | None:
        """What the backup holds; None where that is gone, or damaged."""
        with contextlib.suppress(OSError, TraceError):
            if read_source(self.backup) == self.edit.before:
                return self.backup.read_bytes()
        return None

    def _encoded(self, text: str) -> bytes | None:
        """Bytes of a text of the file; None where nothing says how it was written."""
        like = self.edit.path if self._kept() is None else self.backup
        return encoded(text, like) if like.exists() else None


def apply_to_file(edit: ProposedEdit, backups: Path | None = None, keys: Iterable[str] = ()) -> AppliedEdit:
    """Make an edit in the user's own file, after keeping a copy of it.

    Parameters
    ----------
    edit
        What to change.
    backups
        Folder for the backup (the run's folder); beside the file when omitted.
    keys
        Keys of the suggestions that it is made for, kept with the backup.

    Raises
    ------
    TraceError
        When the file is no longer what it was when the edit was proposed, is write-protected, or cannot hold the new
        text in its encoding: nothing is written then.
    """
    if read_source(edit.path) != edit.before:
        raise TraceError(f"{edit.path} has changed since the run.", hint="Run it again, then apply the fix.")
    if not edit.path.stat().st_mode & 0o222:
        raise TraceError(f"{edit.path} is write-protected.", hint="Allow writing to it first, or use the copy.")
    data, changed = edit.path.read_bytes(), encoded(edit.after, edit.path)
    folder = backups or edit.path.parent
    folder.mkdir(parents=True, exist_ok=True)
    backup = _free(folder / f"{edit.path.name}.before-{edit.rule_id}")
    applied = AppliedEdit(edit, backup, tuple(keys))
    note = {"format": NOTE_FORMAT, **asdict(edit), "path": str(edit.path), "keys": applied.keys, "by": maker()}
    clear_parts(edit.path)
    try:  # the note first: a process that is killed in between leaves nothing of which nobody knows whose it is
        write_atomically(applied.note, json.dumps(note).encode())
        write_atomically(backup, data)
        write_atomically(edit.path, changed)
    except TraceError:  # in a folder that cannot be written, or on a full disk
        applied.forget()
        raise
    return applied


def applied_in(backups: Path) -> list[AppliedEdit]:
    """Changes that `apply_to_file` made with this folder for its backups and that still stand, oldest first.

    A change counts where the user's file is what it left; a folder that came from elsewhere can thus undo nothing but
    what it holds the old and the new text of.
    """
    read = (_read_note(note) for note in _notes(backups))
    found = (_standing(values[0]) for values in read if values is not None)
    return [applied for applied in found if applied is not None]


def clear_spent(backups: Path, now_s: float | None = None) -> int:
    """Take away what a process left that was killed in the middle of a change or of its undo; return how many things.

    That is an unfinished file beside the user's, known by its name, and a backup that the user's file is equal to.

    Parameters
    ----------
    backups
        Folder that `apply_to_file` was given.
    now_s
        Seconds since the epoch; for tests.
    """
    now, count = time.time() if now_s is None else now_s, clear_parts(backups)
    for note in _notes(backups):
        values = _read_note(note)
        if values is None:
            continue
        applied, by = values
        count += clear_parts(applied.edit.path)
        try:
            age = now - note.stat().st_mtime
        except OSError:
            continue
        made_by = re.fullmatch(r"(\d+)-([0-9a-f]{8})", by)
        is_made = age > MAKING_S or made_by is not None and is_left(made_by, 0.0)
        if is_made and applied.edit.path.is_file() and applied.is_taken_back:
            applied.forget()
            count += 1
    return count


def _notes(backups: Path) -> list[Path]:
    """Notes of changes, oldest first."""
    try:
        return sorted(backups.glob(f"*{NOTE_END}"), key=lambda path: path.stat().st_mtime_ns)
    except OSError:
        return []


def _read_note(note: Path) -> tuple[AppliedEdit, str] | None:
    """The change that a note is of, and who made it."""
    try:
        values = json.loads(note.read_bytes())
        if values.pop("format", "") != NOTE_FORMAT:
            return None
        keys, by = tuple(str(key) for key in values.pop("keys", ())), str(values.pop("by", ""))
        edit = ProposedEdit(**{**values, "path": Path(values["path"])})
        if not edit.path.exists() or not all(isinstance(text, str) for text in (edit.before, edit.after)):
            return None
        return AppliedEdit(edit, note.with_name(note.name.removesuffix(NOTE_END)), keys), by
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _standing(applied: AppliedEdit) -> AppliedEdit | None:
    """A change of which the user's file has the new text, and the backup the old one."""
    try:
        old = read_source(applied.backup)
        stands = applied.edit.path.read_bytes() == encoded(applied.edit.after, applied.backup)
    except (OSError, ValueError, LookupError, TraceError):
        return None
    return applied if stands and old == applied.edit.before else None


def _free(path: Path) -> Path:
    candidate, number = path, 2
    while candidate.exists() or candidate.with_name(candidate.name + NOTE_END).exists():
        candidate, number = path.with_name(f"{path.name}-{number}"), number + 1
    return candidate
