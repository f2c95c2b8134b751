"""Processes that the script starts for its training: each spawned rank is recorded as well, in a trace of its own.

Runs in the user's interpreter: standard library and torch only, Python 3.8.

Forked children that train are taken over by ``_child.py`` where torch was built for the CPU. Workers of data loaders
are told apart and never recorded.
"""

import ctypes
import functools
import json
import os
import sys
import time

ELASTIC = "torch.distributed.elastic.multiprocessing.subprocess_handler.subprocess_handler"

SETTLE_SECONDS = 0.05
MOST_PROCESSES = 32  # without a rank that leave a trace: a script may start thousands


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


def let_forks_end(was_used):
    """Let forked children end as they would alone.

    Once a profiler has run, the C++ part of torch 2.13 waits at the end of a forked process for a thread that was left
    behind in the parent, for ever. So what follows Python's own end there is left out: files of C are flushed, and the
    process ends with its status. (Where the C library cannot do that, nothing is changed.)

    Parameters
    ----------
    was_used
        Function that tells whether a profiler of ours has run in the parent.
    """

    def in_child():
        try:
            if was_used():
                library = ctypes.CDLL(None)
                library.on_exit(ctypes.cast(library._exit, ctypes.c_void_p), None)  # called last, with the status
                library.__cxa_atexit(ctypes.cast(library.fflush, ctypes.c_void_p), None, None)  # called before it
        except Exception:
            pass

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=in_child)


def save_before_exit(finish):
    """Let ``os._exit``, which ends a process without ``atexit``, write what was recorded first."""
    original = os._exit

    @functools.wraps(original)
    def _exit(status):
        try:
            finish()
        finally:
            original(status)

    os._exit = _exit


def rank_of(torch):
    """Rank of this process, None where there is none yet."""
    try:
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            return torch.distributed.get_rank()
    except Exception:
        pass
    rank = os.environ.get("RANK", "")
    return int(rank) if rank.isdigit() else None


def settle_before_group_ends(module):
    """Let threads of gloo end their work before their group is destroyed; ``module``: ``distributed_c10d``.

    Since torch erases the context of a backward pass when it is over, the thread that made its last all-reduce may be
    the last to hold it, and needs the interpreter's lock to free it. The group's end waits for that thread with the
    lock held: for ever. So the lock is given away once before.
    """
    original = module.destroy_process_group

    @functools.wraps(original)
    def destroy_process_group(*args, **kwargs):
        time.sleep(SETTLE_SECONDS)
        return original(*args, **kwargs)

    for owner in (module, sys.modules.get("torch.distributed")):
        if getattr(owner, "destroy_process_group", None) is original:
            owner.destroy_process_group = destroy_process_group


def may_be_recorded(torch, report):
    """Whether a process that the script has started, and that trains, is among the first ones; ranks always are."""
    if rank_of(torch) is not None:
        return True
    try:
        for number in range(MOST_PROCESSES):
            try:
                os.close(os.open(report.in_folder("process-%d" % number), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
                return True
            except FileExistsError:
                pass
    except OSError:
        return True
    report.send("work_elsewhere", how="many")
    report.notice("children-many", number=MOST_PROCESSES)
    return False


def is_loader_worker(torch):
    """Whether this process is a data loader's worker."""
    try:
        return torch.utils.data.get_worker_info() is not None
    except Exception:
        return False
