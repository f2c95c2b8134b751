"""Runs the user's script as if it were alone, and records it; this file is the process that the launcher starts.

Runs in the user's interpreter: standard library and torch only, Python 3.8. Nothing of ours can be imported by the
script: the siblings of this file are loaded by path, under names of their own.
"""

import os
import sys

THIS_FILE = os.path.abspath(__file__)
FOLDER = os.path.dirname(THIS_FILE)
if __name__ == "__main__" and sys.path and os.path.realpath(sys.path[0]) == os.path.realpath(FOLDER):
    del sys.path[0]  # before anything else is imported: our modules must not be found instead of others

import atexit  # noqa: E402
import importlib.machinery  # noqa: E402
import io  # noqa: E402
import json  # noqa: E402
import signal  # noqa: E402
import types  # noqa: E402

OURS = "<steplens>/"  # how file names of ours look in stacks: nobody takes them for the user's code


def sibling(name):
    """Module ``_child_<name>.py`` beside this file."""
    full = "_steplens_child_" + name
    if full not in sys.modules:
        with open(os.path.join(FOLDER, "_child_" + name + ".py"), "rb") as source:
            code = compile(source.read(), OURS + name, "exec", dont_inherit=True)
        module = sys.modules[full] = types.ModuleType(full)
        exec(code, module.__dict__)
    return sys.modules[full]


def absolute(path):
    """Absolute path of a file; as it is, where the working folder is gone."""
    try:
        return os.path.abspath(path)
    except OSError:
        return path


class UserCode:
    """Tells the user's files from the interpreter's, installed packages and our own."""

    def __init__(self):
        import sysconfig

        paths = sysconfig.get_paths()
        foreign = {paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib") if key in paths}
        self._foreign = tuple(os.path.realpath(p) + os.sep for p in foreign) + (FOLDER + os.sep,)
        self._plain = tuple(p + os.sep for p in foreign) + self._foreign  # as most names begin: no need to ask the disk
        self._installed = tuple(os.sep + name + os.sep for name in ("site-packages", "dist-packages"))
        self._known = {}

    def __call__(self, name):
        """Absolute path of a file of the user's, else an empty string. Kineto cuts ``sys.path`` off file names."""
        if name not in self._known:
            self._known[name] = self._find(name)
        return self._known[name]

    def _find(self, name):
        if not name or name.startswith("<") or name.startswith(self._plain):
            return ""
        if any(folder in name for folder in self._installed):
            return ""
        folders = [""] if os.path.isabs(name) else [f for f in sys.path if isinstance(f, str)]
        for folder in folders:
            path = absolute(os.path.join(folder, name))
            if os.path.isfile(path):
                real = os.path.realpath(path)
                installed = any(folder in real for folder in self._installed)
                return "" if installed or real.startswith(self._foreign) else path
        return ""


class Child:
    """One run: the report, the recorder and the hooks, put together when torch is imported."""

    def __init__(self, config):
        self.config = config
        self.report = sibling("report").Report(config["events"], sibling("place").Place(config["folder"]))
        self.users = UserCode()
        config["is_users"] = self.users
        self.ranges = None
        if config["line_ranges"]:
            self.ranges = config["ranges"] = sibling("lines").Ranges(config["line_ranges"], self.users)
            self.ranges.install()
        self.childrens = ""  # configuration of the processes that this one starts
        self.torch = self.finder = self.recorder = self.hooks = self.foreign = self.losses = None
        self.pid = os.getpid()
        self.done = False

    def on_torch(self, torch):
        """Hook in, now that torch is there."""
        if os.getpid() != self.pid:
            self._become_forked()
        self.torch = torch
        build = torch.version.cuda or getattr(torch.version, "hip", None)
        self.report.send("torch", version=torch.__version__, device_build=build)
        if self.ranges is not None:
            self.ranges.on_torch(torch)
        self._make_recorder()
        if not self.config["spawned"]:  # first: the other hooks are taken away again, and leave this one
            last = (sibling("recorder").PRIME, sibling("recorder").WINDOW)
            self.losses = sibling("losses").Losses(
                torch,
                self.recorder,
                self.report.in_folder,
                last,
                self.config.get("parameters", False),
                self.config.get("parameters_after", 0),
            )
            self.losses.install()
        procs = sibling("procs")
        self.hooks = sibling("hooks").Hooks(torch, self.finder, self.recorder, self.report, procs.is_loader_worker)
        self.hooks.adopt = self.adopt_fork
        sibling("hooks").connect(self.recorder, self.finder, self.hooks)
        self.hooks.install()
        session_class = sibling("session").Session
        self.foreign = sibling("foreign").Foreign(torch, self.recorder, self.report, session_class)
        self.foreign.install()
        self._watch_processes(procs)
        sibling("hooks").when_imported("torch.distributed.distributed_c10d", procs.settle_before_group_ends)
        procs.let_forks_end(lambda: bool(session_class.ours))
        if self.config["whole"]:
            self.recorder.start_whole()

    def _make_recorder(self):
        names = (
            "session", "sync", "procs", "report", "whole", "checks", "guard", "early", "loops", "limits", "clock",
            "pace", "last",
        )  # fmt: skip
        tools = {name: sibling(name) for name in names}
        self.finder = sibling("steps").StepFinder(self.config["step_source"])
        self.recorder = sibling("recorder").Recorder(self.torch, self.config, self.report, tools)

    def keep_crash(self):
        """Let Python write down where it was if it crashes in native code: into a file, the script's output stays."""
        import faulthandler

        try:
            if not faulthandler.is_enabled():
                self._crash = open(self.report.in_folder("crash.txt"), "w")  # noqa: SIM115 - the handler needs it open
                faulthandler.enable(self._crash)
        except Exception:
            pass

    def follow_commands(self, own_config):
        """Hook in also where the script starts itself anew, or a script of the user's as a command."""
        procs, launches = sibling("procs"), sibling("launches")
        self.childrens = procs.config_for_children(self.config)

        def told(command):
            self.report.notice("commands", command=command)

        made = launches.Launches(THIS_FILE, own_config, self.childrens, self.users, told)
        made.install(sibling("hooks").when_imported)

    def adopt_fork(self):
        """Record a process that was forked and trains, like a spawned one; returns what keeps it from that, or nothing.

        With a GPU's build it is not done: CUPTI does not survive a fork.
        """
        if self.torch.version.cuda or getattr(self.torch.version, "hip", None):
            return "device"
        if self.recorder.broken:
            return "fork"
        old = self.recorder.session
        try:
            if old is not None and old.running:
                if old.with_stacks:
                    return "stacks"  # the tracer of Python calls does not survive a fork either
                old.stop()  # the copy of the parent's recording
        except Exception:
            return "fork"
        self._become_forked()
        self._make_recorder()
        self.hooks.follow(self.finder, self.recorder)
        sibling("hooks").connect(self.recorder, self.finder, self.hooks)
        self.foreign.follow(self.recorder)
        self.report.send("forked")
        return ""

    def _become_forked(self):
        self.pid, self.losses = os.getpid(), None
        self.config = dict(self.config, spawned=True, whole=False, stop_after_window=False)
        from multiprocessing import util

        util.Finalize(None, self.finish, exitpriority=100)  # its processes end without atexit

    def _watch_processes(self, procs):
        if self.config["spawned"]:
            return
        procs.watch_spawn(THIS_FILE, self.childrens)
        sibling("hooks").when_imported(
            procs.ELASTIC, lambda module: procs.rewrite_popen(module, THIS_FILE, self.childrens)
        )

    def finish_at_exit(self):
        """Finish however Python ends this process."""
        atexit.register(self.finish)
        sibling("procs").save_before_exit(lambda: self.finish(abrupt=True))

    def finish(self, abrupt=False):
        """The script has ended (or is about to): write what there is. ``abrupt``: in the middle of anything."""
        if self.done or os.getpid() != self.pid:
            return
        self.done = True
        try:
            if self.recorder is not None:
                self.recorder.finish(abrupt)
                self.foreign.finish()
                if self.losses is not None:
                    self.report.saved(lambda _: self.losses.write(), "", "not-written")
                if self.recorder.number or not self.config["spawned"]:
                    self.report.send("summary", **self.recorder.summary())
        except Exception as error:
            import traceback

            self.report.send("recording_failed", error=str(error), traceback=traceback.format_exc())
        finally:
            if self.ranges is not None:
                self.report.send("ranges", **self.ranges.summary())
            if self.recorder is None or self.recorder.number or not self.config["spawned"]:
                self.report.send("sources", files=self.sources())
            self.report.send("finished", torch=self.torch is not None)

    def sources(self):
        """Files of the user's that were imported."""
        found = set()
        for module in list(sys.modules.values()):
            name = getattr(module, "__file__", None)
            if isinstance(name, str) and name.endswith(".py"):
                path = self.users(absolute(name))
                if path:
                    found.add(path)
        return sorted(found)


def run_script(config):
    """Run a file, a folder or an archive with ``__main__.py``, as ``python PATH`` does."""
    import runpy

    typed = config["script"]
    path = os.path.abspath(typed)
    sys.argv = [typed] + config["argv"]
    if os.path.isdir(path) or not os.path.splitext(path)[1].startswith(".py") and _is_archive(path):
        sys.path.insert(0, path)  # as runpy does, safe path or not
        main = _fresh_main()
        main.__dict__["__file__"] = path
        runpy._run_module_as_main("__main__", False)
        return
    _put_on_path(os.path.dirname(os.path.realpath(path)))
    main = _fresh_main()
    name = path if sys.version_info >= (3, 9) else typed
    main.__file__ = name
    main.__cached__ = None
    loader_class = importlib.machinery.SourceFileLoader
    main.__loader__ = loader_class("__main__", name)
    with io.open_code(path) as handle:
        source = handle.read()
    code = compile_main(source, name, config)
    exec(code, main.__dict__)


def compile_main(source, name, config):
    """Code of the main script, with line ranges where they are wanted."""
    if config["line_ranges"]:
        tree = config["ranges"].transform(source, name)
        if tree is not None:
            return compile(tree, name, "exec", dont_inherit=True)
    return compile(source, name, "exec", dont_inherit=True)


def run_module(config):
    """Run a module as ``python -m`` does."""
    import runpy

    sys.argv = ["-m"] + config["argv"]
    _put_on_path(os.getcwd())
    _fresh_main()
    runpy._run_module_as_main(config["module"])


def _put_on_path(folder):
    if not getattr(sys.flags, "safe_path", False) and not sys.flags.isolated:
        sys.path.insert(0, folder)


def _is_archive(path):
    import zipfile

    return zipfile.is_zipfile(path)


def _fresh_main():
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = sys.modules["builtins"]
    main.__dict__["__annotations__"] = {}
    sys.modules["_steplens_child_main"] = sys.modules["__main__"]  # keeps its globals alive
    sys.modules["__main__"] = main
    return main


def hide_wrapper_frames():
    """Show an uncaught exception without our frames, through whichever hook the script has set."""
    shown = sys.excepthook

    def excepthook(kind, error, trace):
        seen = set()
        chained = error
        while chained is not None and id(chained) not in seen:
            seen.add(id(chained))
            chained.__traceback__ = without_our_frames(chained.__traceback__)
            chained = chained.__cause__ or chained.__context__
        shown(kind, error, error.__traceback__)

    sys.excepthook = excepthook


def without_our_frames(trace):
    """The same traceback with the frames of this folder's files taken out."""
    first = last = None
    while trace is not None:
        following = trace.tb_next
        name = trace.tb_frame.f_code.co_filename
        if not name.startswith(OURS) and absolute(name) != os.path.join(FOLDER, "_child.py"):
            if last is None:
                first = trace
            else:
                last.tb_next = trace
            last = trace
        trace = following
    if last is not None:
        last.tb_next = None
    return first


def spawned(config_path):
    """Hook in, in a process that ``multiprocessing`` has just spawned."""
    try:
        with open(config_path, encoding="utf-8") as handle:
            child = Child(json.load(handle))
    except OSError:
        return  # the run folder is gone: the process must run all the same
    child.finish_at_exit()
    sibling("hooks").when_imported("torch", child.report.guarding(child.on_torch))


def main(config_path, words):
    """Run what the configuration says; a rank of ``torchrun`` is named by the words after it."""
    with open(config_path, encoding="utf-8") as handle:
        config = json.load(handle)
    if words:
        at = 2 if words[0] == "-m" else 1
        config.update({"module" if at == 2 else "script": words[at - 1], "argv": words[at:]})
    child = Child(config)
    child.report.send("started", python=sys.version, executable=sys.executable, spawned=config["spawned"])
    child.keep_crash()
    for stream in (sys.stdout, sys.stderr):
        try:  # the launcher's pipe is no terminal, but its user wants to see each line as it is written
            stream.reconfigure(line_buffering=True)
        except (AttributeError, ValueError):
            pass
    if hasattr(sys, "orig_argv"):
        target = ["-m", config["module"]] if config["module"] else [config["script"]]
        sys.orig_argv = [sys.executable] + target + config["argv"]
    child.finish_at_exit()
    if not config["spawned"]:
        sibling("group").lead()
        child.follow_commands(config_path)
    sibling("hooks").when_imported("torch", child.report.guarding(child.on_torch))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # inherited from a launcher in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)  # Stop begins with an interrupt
    sys.argv = []
    try:
        if config["module"]:
            run_module(config)
        else:
            run_script(config)
    except SystemExit:
        raise
    except BaseException:
        hide_wrapper_frames()
        raise


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
