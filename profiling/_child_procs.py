"""Processes that the script starts for its training: each spawned rank is recorded as well, in a trace of its own.

Runs in the user's interpreter: standard library and torch only, Python 3.8.

Forked children are left alone: kineto does not survive a fork. Workers of data loaders are told apart and never
recorded.
"""

import functools
import json
import os
import sys

ELASTIC = "torch.distributed.elastic.multiprocessing.subprocess_handler.subprocess_handler"


def config_for_children(config):
    """Write what spawned processes are told; returns the file's path."""
    plain = {key: value for key, value in config.items() if key not in ("is_users", "ranges")}
    plain.update(spawned=True, whole=False, stop_after_window=False, script="", module="", argv=[])
    path = os.path.join(config["folder"], "children.json")
    with open(path, "w", encoding="utf-8") as out:
        json.dump(plain, out)
    return path


def watch_spawn(child_file, config_path):
    """Let processes of ``multiprocessing``'s ``spawn`` method start with our hooks."""
    import multiprocessing.spawn as spawn

    original = spawn.get_command_line

    @functools.wraps(original)
    def get_command_line(**kwargs):
        command = original(**kwargs)
        if "-c" in command:
            at = command.index("-c") + 1
            command[at] = _PRELUDE.format(file=child_file, config=config_path) + command[at]
        return command

    spawn.get_command_line = get_command_line


_PRELUDE = (
    "g = {{'__name__': '_steplens_spawned', '__file__': {file!r}}}; "
    "exec(compile(open({file!r}, 'rb').read(), {file!r}, 'exec'), g); g['spawned']({config!r}); del g; "
)


def rewrite_popen(handler_module, child_file, config_path):
    """Let ``torchrun`` (and what builds on it) start its ranks through us."""
    handler = handler_module.SubprocessHandler
    original = handler._popen

    @functools.wraps(original)
    def _popen(self, args, env, *more, **kwargs):
        words = list(args)
        at = 1
        while at < len(words) and words[at] == "-u":
            at += 1
        if words and os.path.basename(words[0]) == os.path.basename(sys.executable) and at < len(words):
            words[at:at] = [child_file, config_path]
        return original(self, tuple(words), env, *more, **kwargs)

    handler._popen = _popen


def rank_of(torch):
    """Rank of this process, None where there is none yet."""
    try:
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            return torch.distributed.get_rank()
    except Exception:
        pass
    rank = os.environ.get("RANK", "")
    return int(rank) if rank.isdigit() else None


def is_loader_worker(torch):
    """Whether this process is a data loader's worker."""
    try:
        return torch.utils.data.get_worker_info() is not None
    except Exception:
        return False
