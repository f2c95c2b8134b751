"""The run folder, found again where somebody renames or moves it while the script runs.

Used by the launcher, too. Standard library only, Python 3.8.
"""

import os
import sys
from os import O_RDONLY, close, fstat, open, stat  # a script may replace those of the module


class Place:
    """A folder that is held open, so that the system can tell where it is.

    Where the system cannot (Windows, which does not let a folder in use be renamed either), it is where it was.

    Parameters
    ----------
    path
        Absolute path of the folder, which exists.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._handle, self._mark = -1, (0, 0)
        try:
            self._handle = open(path, O_RDONLY | getattr(os, "O_DIRECTORY", 0))
            self._mark = _mark(fstat(self._handle))
        except OSError:
            pass

    def now(self) -> str:
        """Where the folder is; the last place known, where it is nowhere."""
        try:
            if self._handle >= 0 and _mark(stat(self._path)) == self._mark:
                return self._path
        except OSError:
            pass
        try:
            found = _path_of(self._handle)
            if _mark(stat(found)) == self._mark:  # not so where a script has closed what it did not open
                self._path = found
        except (OSError, ValueError):
            pass
        return self._path

    def let_go(self) -> None:
        """The folder is not in use any more."""
        if self._handle >= 0:
            close(self._handle)
            self._handle = -1


def _mark(status: os.stat_result) -> "tuple[int, int]":
    return status.st_dev, status.st_ino


def _path_of(handle: int) -> str:
    if handle < 0:
        raise ValueError("no folder")
    if sys.platform == "darwin":
        import fcntl

        return os.fsdecode(fcntl.fcntl(handle, 50, bytes(1024)).rstrip(b"\0"))  # F_GETPATH
    return os.readlink("/proc/self/fd/%d" % handle)
