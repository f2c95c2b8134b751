"""Follows the script into other processes of the same interpreter that it starts as commands: each is hooked as well.

Runs in the user's interpreter: standard library only, Python 3.8. What such a process is told to run must be a file or
a package of the user's: tools, and the compilers that torch starts, are left alone. A command that looks like training
and cannot be followed (through a shell, under another interpreter, a launcher of ranks) is told.
"""

import functools
import importlib.machinery
import os
import re
import shutil
import sys

PYTHON = re.compile(r"\bpython[\d.]*\b|\.py\b|\b(?:torchrun|accelerate|deepspeed)\b")
# What builds code for torch.compile and for extensions, and the helpers that torch starts itself, train nothing.
BUILDERS = re.compile(r"^(?:[\w.-]*(?:[gc]\+\+|gcc|clang(?:\+\+)?)[\d.-]*|cc|cl|nvcc|hipcc|ptxas|ninja)(?:\.exe)?$")
TORCH_HELPER = re.compile(r"[\\/]torch[\\/]_inductor[\\/]")
LONGEST_TOLD = 100  # characters of a command
WITH_VALUE = ("-X", "-W", "--check-hash-based-pycs")


class Launches:
    """Rewrites commands.

    Parameters
    ----------
    child_file
        Path of ``_child.py``.
    own_config, childrens_config
        Configurations of this process, should it replace itself, and of processes that it starts.
    is_users
        Function from a file name to its absolute path where it is the user's code, else an empty string.
    not_followed
        Called with the first command that looks like training and is left alone.
    """

    def __init__(self, child_file, own_config, childrens_config, is_users, not_followed):
        self._child_file, self._is_users, self._not_followed = child_file, is_users, not_followed
        self._own, self._childrens = own_config, childrens_config
        self._pid = os.getpid()

    def install(self, when_imported):
        """Hook in; nothing is imported for it."""
        for name in ("execv", "execve"):
            if hasattr(os, name):
                setattr(os, name, self._replacing(getattr(os, name)))
        os.system = self._through_shell(os.system)
        when_imported("subprocess", self._on_subprocess)

    def _through_shell(self, original):
        @functools.wraps(original)
        def system(command):
            self._tell(command)
            return original(command)

        return system

    def _tell(self, command):
        """Tell once of a command that is left alone."""
        try:
            words = [command] if isinstance(command, (str, bytes, os.PathLike)) else command
            text = " ".join(os.fsdecode(word) for word in words)
            if BUILDERS.match(os.path.basename(text.split(None, 1)[0])) or TORCH_HELPER.search(text):
                return
            if self._not_followed is not None and PYTHON.search(text):
                tell, self._not_followed = self._not_followed, None
                tell(text if len(text) <= LONGEST_TOLD else text[:LONGEST_TOLD] + "...")
        except Exception:
            pass

    def _replacing(self, original):
        @functools.wraps(original)
        def execute(path, args, *env):
            try:
                config = self._own if os.getpid() == self._pid else self._childrens
                args = list(args)[:1] + (self.rewritten([path] + list(args)[1:], config) or list(args))[1:]
            except Exception:
                pass
            return original(path, args, *env)

        return execute

    def _on_subprocess(self, module):
        original = module.Popen.__init__

        @functools.wraps(original)
        def __init__(popen, args, *more, **kwargs):
            try:
                plain = not more and not kwargs.get("shell") and not kwargs.get("executable")
                followed = None
                if plain and isinstance(args, (list, tuple)):
                    followed = self.rewritten(args, self._childrens, kwargs.get("cwd"))
                if followed is None:
                    self._tell(args)
                args = followed or args
            except Exception:
                pass
            original(popen, args, *more, **kwargs)

        module.Popen.__init__ = __init__

    def rewritten(self, command, config, folder=None):
        """The command as it goes through us; None where it does not run the user's code with this interpreter."""
        words = [os.fsdecode(word) for word in command]
        if not words or not _is_this_python(words[0]):
            return None
        at = 1
        while at < len(words) and words[at].startswith("-") and words[at] not in ("-m", "-c", "-"):
            at += 2 if words[at] in WITH_VALUE else 1
        if at >= len(words) or not self._runs_users(words[at:], folder or os.getcwd()):
            return None
        return words[:at] + [self._child_file, config] + words[at:]

    def _runs_users(self, words, folder):
        if words[0] != "-m":
            return bool(self._is_users(os.path.join(os.fsdecode(folder), words[0])))
        top = words[1].partition(".")[0] if len(words) > 1 else ""
        spec = importlib.machinery.PathFinder.find_spec(top, [os.fsdecode(folder)]) if top else None
        return spec is not None and bool(spec.origin) and bool(self._is_users(spec.origin))


def _is_this_python(word):
    if word == sys.executable:
        return True
    found = shutil.which(word) if os.path.basename(word).startswith("python") else None
    return found is not None and os.path.abspath(found) == os.path.abspath(sys.executable)
