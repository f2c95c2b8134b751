"""Writing a file so that it is there whole or not at all, and never over something of the user's."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from core.errors import TraceError

LOCK_S, LOOK_S = 1.0, 0.002


def check_output(path: Path, suffixes: tuple[str, ...], inputs: Iterable[Path]) -> None:
    """Refuse an output that would destroy something.

    Parameters
    ----------
    path
        Where the output is to be written.
    suffixes
        Endings (lower case) that such an output may have: a trace given in its place by mistake has another one.
    inputs
        Files that are being read.

    Raises
    ------
    TraceError
        When the output is one of the inputs, is a folder, has a foreign ending or lies in no folder.
    """
    if path.suffix.lower() not in suffixes:
        raise TraceError(f"{path}: the output must end in {' or '.join(suffixes)}.")
    if path.is_dir():
        raise TraceError(f"{path}: is a folder, so nothing can be written there.")
    if path.exists() and not path.is_file():
        raise TraceError(f"{path}: is a device or a pipe, so nothing can be written there.")
    if not path.parent.is_dir():
        raise TraceError(f"{path}: the folder {path.parent} does not exist.", hint="Create it first.")
    for read in inputs:
        with contextlib.suppress(OSError):
            if path.exists() and os.path.samefile(path, read):
                raise TraceError(f"{path}: is the input, which is never overwritten.", hint="Choose another name.")


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file by way of a temporary one beside it.

    Raises
    ------
    TraceError
        When the folder cannot be written; an older file of that name is then untouched.
    """
    temporary = None
    path = Path(os.path.realpath(path))  # a link stays one, what it leads to is replaced
    try:
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except OSError as error:
        raise TraceError(
            f"{path}: cannot be written: {error.strerror or error}.", hint="Nothing was changed."
        ) from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Let no other window work here in a folder meanwhile, where the system has locks for that.

    One that has stood still for `LOCK_S` is not waited for: this is a matter of milliseconds.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    handle = None
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            handle = os.open(folder, os.O_RDONLY)
            end = time.monotonic() + LOCK_S
            while not _locked(fcntl.flock, handle, fcntl.LOCK_EX | fcntl.LOCK_NB) and time.monotonic() < end:
                time.sleep(LOOK_S)
        yield
    finally:
        if handle is not None:
            os.close(handle)  # gives the lock back


def _locked(lock: Callable[[int, int], None], handle: int, how: int) -> bool:
    try:
        lock(handle, how)
    except BlockingIOError:  # another has it
        return False
    return True


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
