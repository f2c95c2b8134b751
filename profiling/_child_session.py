"""One recording by torch's profiler: prepare, start, stop, save, and the exact lines that the JSON leaves out.

Runs in the user's interpreter: standard library and torch only, Python 3.8, torch 2.0 and newer.
"""

import contextlib
import json
import os
import re
import threading
import time

STEP_MARK = re.compile(
    rb'("user_annotation", "name": "ProfilerStep#(\d+)", "pid": \d+, "tid": \d+,\s*"ts": )([\d.]+)(, "dur": )([\d.]+)'
)
LATE_US = 20.0  # from when on a step's mark did not begin when its step did
# Work of the device has the number of its operator, too, but no place among the events of the host.
OPERATORS_ID = re.compile(rb'"External id": (\d+)(?=[^{}]*"Ev Idx")')


def version_of(torch):
    """Major and minor version of torch, as integers."""
    found = re.match(r"(\d+)\.(\d+)", torch.__version__)
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)


def devices_in_use(torch):
    """Kinds of accelerator that the script has initialised; asking never initialises one itself."""
    kinds = []
    for kind in ("cuda", "xpu", "mtia"):
        module = getattr(torch, kind, None)
        try:
            if module is not None and hasattr(module, "is_initialized") and module.is_initialized():
                kinds.append(kind)
        except Exception:
            continue
    return kinds


def synchronize(torch):
    """Wait for every accelerator in use."""
    for kind in devices_in_use(torch):
        getattr(torch, kind).synchronize()


def _experimental_config(torch, options, all_threads):
    """The extra switches that this version of torch knows; None where it has none of them.

    torch 2.0 to 2.3 record no stacks unless ``verbose`` is set (pytorch#100253); later versions do, and there it would
    only repeat each operator's stack as text.
    """
    try:
        from torch._C._profiler import _ExperimentalConfig
    except ImportError:
        return None
    wanted = {}
    if options["stacks"] and version_of(torch) < (2, 4):
        wanted["verbose"] = True
    if options.get("cuda_sync_events"):
        wanted["enable_cuda_sync_events"] = True
    if all_threads:
        wanted["profile_all_threads"] = True
    known = _ExperimentalConfig.__init__.__doc__ or ""
    wanted = {name: value for name, value in wanted.items() if name in known}
    try:
        return _ExperimentalConfig(**wanted) if wanted else None
    except TypeError:
        return None


def can_record_all_threads():
    """Whether this torch records threads other than the one that started the profiler."""
    try:
        from torch._C._profiler import _ExperimentalConfig
    except ImportError:
        return False
    return "profile_all_threads" in (_ExperimentalConfig.__init__.__doc__ or "")


def mixes_up_stacks(torch):
    """Whether a recording of Python stacks is lost where it follows another one too soon.

    Before torch 2.8 (pytorch#150370) the end of a C function that had begun in the recording before counts as one too
    many, and stopping fails: "Python replay stack is empty". It takes a thread that waits in such a function, as each
    worker of a data loader has one.
    """
    return version_of(torch) < (2, 8) and threading.active_count() > 1


def steps_of_rest(torch, number):
    """Steps to make before the next recording, from ``number`` on, at least one: each thread must have had its turn."""
    last = Session.stacks_until
    return 1 if last is None or not mixes_up_stacks(torch) else max(1, threading.active_count() - (number - last))


class Session:
    """A recording; started and stopped by the same thread, at most one at a time.

    Parameters
    ----------
    torch
        The module.
    options
        ``shapes, memory, stacks, flops, modules, cuda_sync_events`` as booleans.
    all_threads
        Record every thread's operators where this torch can. Always wished for away from the main thread: only then
        may another thread stop the recording after this one has ended.
    """

    _of_thread = threading.local()

    ours = []  # the autograd profilers that belong to us, so that the script's own can be told apart
    stacks_until = None  # step after the last one that was recorded with stacks

    def __init__(self, torch, options, all_threads=False):
        from torch.profiler import ProfilerActivity, _KinetoProfile

        activities = [ProfilerActivity.CPU]
        self.devices = devices_in_use(torch)
        for kind in self.devices:
            activity = getattr(ProfilerActivity, kind.upper(), None)
            if activity is not None:
                activities.append(activity)
        self._torch = torch
        self._options = options
        self.off_main = threading.current_thread() is not threading.main_thread()
        self._thread_words = _words_of_thread() if self.off_main else {}  # what Kineto calls it -> with its name
        self.all_threads = (all_threads or self.off_main) and can_record_all_threads()
        config = _experimental_config(torch, options, self.all_threads)
        self._profile = _KinetoProfile(
            activities=activities,
            record_shapes=options["shapes"],
            profile_memory=options["memory"],
            with_stack=options["stacks"],
            with_flops=options["flops"],
            with_modules=options["modules"],
            experimental_config=config,
        )
        self.with_stacks = options["stacks"]
        self._marker = None
        self._prepared = False
        self.running = False
        self._thread = 0  # that started it
        self.stopped = False
        self.steps = []  # numbers of the complete steps in it
        self.left_out = []  # options that the user asked for and this recording goes without
        self.open_step = None
        self._begun = {}  # step -> when it began, nanoseconds since the epoch
        self._no_step = None  # number in a mark of the script's own profiler that holds no step

    def prepare(self):
        """Warm the profiler up (on CUDA this attaches CUPTI)."""
        with self._torch.profiler.record_function("warm-up"):  # its first use imports modules: not in the trace
            pass
        Session.ours.append(None)  # from here on the next profiler made is ours
        try:
            self._profile.prepare_trace()
        finally:
            Session.ours.remove(None)
        Session.ours.append(self._profile.profiler)
        # The older versions build one Python object per event when the profiler stops; nobody asks for them here.
        if hasattr(self._profile.profiler, "_parse_kineto_results"):
            self._profile.profiler._parse_kineto_results = lambda result: []
        self._prepared = True

    def start(self):
        """Begin to record."""
        if not self._prepared:
            self.prepare()
        with _own_call(self._torch.nn.Module):
            self._profile.start_trace()
        self.running = True
        self._thread = threading.get_ident()
        if self.off_main and not self.all_threads:
            Session._of_thread.last_act = _AtThreadEnd(self.stop)

    def begin_step(self, number, marked=True):
        """Begin a step; ``marked``: with a ``ProfilerStep#number`` range, which else the script's profiler opens."""
        self.open_step = number
        if marked:
            self._begun[number] = time.time_ns()
            self._marker = self._torch.profiler.record_function("ProfilerStep#%d" % number)
            self._marker.__enter__()

    def end_step(self, complete=True):
        """End the open step."""
        marker, self._marker = self._marker, None
        if marker is not None:
            marker.__exit__(None, None, None)
        if complete and self.open_step is not None:
            self.steps.append(self.open_step)
        self.open_step = None

    def drop_step(self, number):
        """The open step was none; ``number``: in the name of the mark that the script's own profiler gave it."""
        self.open_step, self._no_step = None, number

    def may_stop_here(self):
        """Whether this thread may end the recording."""
        return not self.running or self.all_threads or self._thread == threading.get_ident()

    def stop(self):
        """End the recording; an open step stays unfinished."""
        if self.running:
            self.running = False
            if self.with_stacks:
                Session.stacks_until = self.steps[-1] + 1 if self.steps else self.open_step or 0
            self._profile.stop_trace()
            self.stopped = True

    def size(self):
        """How many events it holds."""
        return len(self._profile.profiler.kineto_results.events())

    def save(self, path):
        """Write the trace. Kineto copies ``path`` into the file as its name, so there is no moving it afterwards.

        Raises ``OSError`` where the file is not whole: Kineto itself tells that to nobody but stderr.
        """
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)  # it may have been deleted
            self._profile.export_chrome_trace(path)
            check_whole(path)
            if self.with_stacks and self._begun and (2, 1) <= version_of(self._torch) < (2, 13):
                set_marks_right(path, self._begun)
            words = dict(self._thread_words)
            if self._marker is not None:  # no tool shall count it as a step
                words[b'"ProfilerStep#%d"' % self.open_step] = b'"unfinished step %d"' % self.open_step
            if self._no_step is not None:
                words[b'"ProfilerStep#%d"' % self._no_step] = b'"after step %d"' % (self._no_step - 1)
            if self.left_out and self.steps:  # whoever opens it shall know what it is
                told = {"first_steps": True, "left_out": self.left_out}
                words[b'"schemaVersion"'] = b'"steplens": %s, "schemaVersion"' % json.dumps(told).encode()
            if words:
                _reword(path, words)
            if self._options["flops"]:
                _write_flops(path, self._profile.profiler.kineto_results.events())
        except OSError:
            for left in (path, path + ".partial", path + ".tmp"):  # a full disk needs the room
                try:
                    os.unlink(left)
                except OSError:
                    pass
            raise

    def save_lines(self, path, is_users):
        """Write which line of the user's code made each call, see ``docs/capture.md``.

        The JSON gives a function's first line only; the event tree still knows the caller's.
        """
        tree = self._profile.profiler.kineto_results.experimental_event_tree()
        table = _caller_lines(tree, is_users)
        with open(path + ".partial", "w", encoding="utf-8", errors="backslashreplace") as out:
            json.dump(table, out, separators=(",", ":"))
        os.replace(path + ".partial", path)


@contextlib.contextmanager
def _own_call(module_class):
    """Have torch's own ``Module.__call__`` in its place for a moment.

    The profiler looks once, when its first recording begins, which code calls a module, and knows modules by it from
    then on: with our hook there none would be named once the hook is gone.
    """
    hook = module_class.__call__
    own = getattr(hook, "steplens_original", None)
    if own is None:
        yield
        return
    module_class.__call__ = own
    try:
        yield
    finally:
        module_class.__call__ = hook


class _AtThreadEnd:
    """Kept in a thread's own storage, it is called by that thread when it ends."""

    def __init__(self, act):
        self._act = act

    def __del__(self):
        try:
            self._act()
        except Exception:
            pass


def check_whole(path):
    """Raise the ``OSError`` that kept a trace from being written whole; nothing where it is."""
    try:
        with open(path, "rb") as source:
            source.seek(max(os.path.getsize(path) - 64, 0))
            if source.read().rstrip().endswith(b"}"):
                return
    except OSError:
        pass
    with open(path, "ab", buffering=0) as probe:  # the system tells the reason to whoever writes on
        for _ in range(16):
            if probe.write(bytes(1 << 16)) < 1 << 16:
                probe.write(bytes(1 << 16))
    raise OSError("the profiler wrote no whole file, and did not say why")


def _words_of_thread():
    """What Kineto calls this thread, and the same with the name that the script gave it."""
    name, number = threading.current_thread().name, getattr(threading, "get_native_id", lambda: 0)()
    with_name = "thread %d (%s)" % (number, name)
    try:
        with open("/proc/self/task/%d/comm" % number, "rb") as source:
            called = source.read().rstrip(b"\n")
    except OSError:
        called = b"python"
    return {b'"thread %d (%s)"' % (number, called): json.dumps(with_name).encode("ascii")}


def _reword(path, words):
    """Put other texts into a trace."""
    with open(path, "rb") as source:
        content = source.read()
    for old, new in words.items():
        content = content.replace(old, new)
    _write_anew(path, content)


def set_marks_right(path, begun):
    """Let marks begin with their steps: with stacks, torch 2.5 moves them to the Python function that ends them."""
    with open(path, "rb") as source:
        content = source.read()
    origin = int((re.findall(rb'"baseTimeNanoseconds": (\d+)', content) or [0])[-1])

    def moved(found):
        began = (begun.get(int(found.group(2)), 0) - origin) / 1e3
        late = float(found.group(3)) - began
        if began <= 0 or late < LATE_US:
            return found.group()
        return b"%s%.3f%s%.3f" % (found.group(1), began, found.group(4), float(found.group(5)) + late)

    mended = STEP_MARK.sub(moved, content)
    if mended != content:
        _write_anew(path, mended)


def _write_anew(path, content):
    with open(path + ".partial", "wb") as out:
        out.write(content)
    os.replace(path + ".partial", path)


def _write_flops(path, events):
    """Put the operations that torch has counted into the arguments of their operators: its JSON leaves them out."""
    counted = {b"%d" % e.correlation_id(): b"%d" % e.flops() for e in events if e.flops()}
    if not counted:
        return

    def told(found):
        number = counted.pop(found.group(1), None)
        return found.group() if number is None else found.group() + b', "flops": ' + number

    with open(path, "rb") as source:
        content = OPERATORS_ID.sub(told, source.read())
    _write_anew(path, content)


def _caller_lines(tree, is_users):
    """Table of the calls made from the user's files: start, duration, file, line, function, callee."""
    files, functions, names = {}, {}, {}
    columns = {"start_ns": [], "dur_ns": [], "file": [], "line": [], "function": [], "callee": []}
    kept = {}  # file name -> whether it is the user's
    stack = list(tree)
    while stack:
        event = stack.pop()
        stack.extend(event.children)
        caller = getattr(event.extra_fields, "caller", None)
        if caller is None:
            continue
        try:
            name, function, callee = caller.file_name, caller.function_name, event.name
        except UnicodeDecodeError:  # of code that is gone, as a compiler makes it: torch kept no copy of its names
            continue
        if name not in kept:
            kept[name] = is_users(name)
        if not kept[name]:
            continue
        columns["start_ns"].append(event.start_time_ns)
        columns["dur_ns"].append(event.duration_time_ns)
        columns["file"].append(files.setdefault(kept[name], len(files)))
        columns["line"].append(caller.line_number)
        columns["function"].append(functions.setdefault(function, len(functions)))
        columns["callee"].append(names.setdefault(callee, len(names)))
    order = sorted(range(len(columns["start_ns"])), key=columns["start_ns"].__getitem__)
    columns = {key: [values[i] for i in order] for key, values in columns.items()}
    return {
        "format": "steplens.lines/1",
        "files": list(files),
        "functions": list(functions),
        "callees": list(names),
        "calls": columns,
    }
