"""Listens to the training loop through torch's own hooks, and to any profiler the script brings along.

Runs in the user's interpreter: standard library and torch only, Python 3.8, torch 2.0 and newer.
"""

import functools
import os
import sys
import threading
import time
import weakref

KNOWN_CALL = "unpatched_nn_module_call"  # in torch._dynamo, since torch 2.5
_FILE_NAME = sys._getframe().f_code.co_filename  # as the tracer sees it: ``<steplens>/hooks``


def when_imported(name, callback):
    """Call ``callback(module)`` right after the script's first import of this module has finished."""
    if name in sys.modules:
        callback(sys.modules[name])
        return
    sys.meta_path.insert(0, _ImportWatch(name, callback))


class _ImportWatch:
    """Finder that only waits for one module and then steps aside."""

    def __init__(self, name, callback):
        self._name, self._callback = name, callback

    def find_spec(self, name, path=None, target=None):
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        import importlib.util

        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            sys.meta_path.insert(0, self)
            return spec
        loader, callback = spec.loader, self._callback
        others = getattr(loader, "__dict__", {}).get("exec_module")  # of a tool that waits for the same module

        def exec_module(module):
            if others is None:
                del loader.exec_module
            else:
                loader.exec_module = others
            loader.exec_module(module)
            callback(module)

        try:
            loader.exec_module = exec_module
        except AttributeError:
            sys.meta_path.insert(0, self)
        return spec


class Hooks:
    """Connects torch with the finder and the recorder.

    Parameters
    ----------
    torch, finder, recorder, report
        The module, a ``StepFinder``, a ``Recorder`` and a ``Report``.
    """

    def __init__(self, torch, finder, recorder, report, is_loader_worker):
        self.torch, self.finder, self.recorder, self.report = torch, finder, recorder, report
        self.is_loader_worker = is_loader_worker
        self.pid = os.getpid()
        self.depth = 0  # of module calls
        self._unheard = False  # module calls are passed on to nobody
        self._apart = lambda act, *args: act(*args)  # without torch.compile's tracer, once that is there
        self._is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)  # True for it
        self._hook = None  # of module calls
        self._undo = []
        self._busy = threading.local()
        self.used_in_fork = False
        self.adopt = lambda: "fork"  # takes a forked child over, or returns what keeps it from that
        self.workers_seen = False
        self._in_backward = getattr(torch._C, "_current_graph_task_id", lambda: -1)  # -1 outside; torch 2.0: unknown
        self._put_off, self._awaits_backward = [], False

    def install(self):
        """Hook in."""
        self._hook_optimizers()
        self._hook_loaders()
        self._hook_modules()
        self._hook_signs()
        when_imported("torch._dynamo", self._hide_from_compiler)

    def _tell(self, event, *args):
        """Pass an event on, unless it comes from a forked child, a loader's worker, or our own doing."""
        if os.getpid() != self.pid and not self._adopted():
            return
        if getattr(self._busy, "on", False) or self.is_loader_worker(self.torch):
            return
        self._busy.on = True
        try:
            self._apart(self.recorder.on_event, event, args)
        finally:
            self._busy.on = False

    def _tell_outside(self, event, *args):
        """Pass an event on as soon as no backward pass is on: a recording is not begun or ended inside of one."""
        if self._in_backward() == -1:
            self._tell(event, *args)
            return
        self._put_off.append((event, args))
        if not self._awaits_backward:
            self._awaits_backward = True
            autograd = self.torch.autograd
            autograd.backward = self._flushing(autograd.backward)

    def _flushing(self, original):
        @functools.wraps(original)
        def backward(*args, **kwargs):
            try:
                return original(*args, **kwargs)
            finally:
                self._flush()

        return backward

    def _flush(self):
        if self._put_off and self._in_backward() == -1:
            late, self._put_off = self._put_off, []
            for event, args in late:
                self._tell(event, *args)

    def _adopted(self):
        """In a forked child: whether it is recorded from here on; else the launcher is told, once."""
        if self.used_in_fork or self.is_loader_worker(self.torch):
            return False
        kept_from = self.adopt()
        if not kept_from:
            return True
        self.used_in_fork = True
        self.report.send("work_elsewhere", how=kept_from)
        return False

    def follow(self, finder, recorder):
        """Go on in a forked child, with a finder and a recorder of its own."""
        self.pid, self.finder, self.recorder, self.depth = os.getpid(), finder, recorder, 0
        self._busy = threading.local()

    # Optimizers -------------------------------------------------------------------------------------------------

    def _hook_optimizers(self):
        optimizer_class = self.torch.optim.Optimizer
        tell, tell_outside = self._tell, self._tell_outside
        original = optimizer_class.__init__
        module = sys.modules[optimizer_class.__module__]
        register = getattr(module, "register_optimizer_step_post_hook", None)

        def gone(key):
            self.finder.optimizer_gone(key)

        def stepped(optimizer, args, kwargs):
            tell_outside("stepped", id(optimizer))

        self._stepped = stepped

        @functools.wraps(original)
        def __init__(self, *args, **kwargs):
            original(self, *args, **kwargs)
            weakref.finalize(self, gone, id(self)).atexit = False
            tell("optimizer_made", id(self))
            if register is None and hasattr(self, "register_step_post_hook"):  # torch 2.0
                self.register_step_post_hook(stepped)

        optimizer_class.__init__ = __init__
        if register is not None:
            register(stepped)

    # Loaders ----------------------------------------------------------------------------------------------------

    def _hook_loaders(self):
        iterator = self.torch.utils.data.dataloader._BaseDataLoaderIter
        original, tell, hooks = iterator.__next__, self._tell, self

        @functools.wraps(original)
        def __next__(self):
            tell("fetch", id(getattr(self, "_dataset", self)), _is_exhausted(self), _is_fresh(self))
            if not hooks.workers_seen and getattr(self, "_num_workers", 0):
                hooks.workers_seen = True
                hooks.report.notice("workers")
                hooks.recorder.ahead = self._num_workers * (getattr(self, "_prefetch_factor", None) or 2)
            return original(self)

        iterator.__next__ = __next__

    # Modules: only as long as nothing better is known ----------------------------------------------------------

    def _hook_modules(self):
        module_class, hooks, tell = self.torch.nn.Module, self, self._tell
        self._unheard = False
        original = getattr(module_class.__call__, "steplens_original", None)
        if original is not None:  # the hook is there still, see `_unhook_modules`
            self._undo.append(lambda: self._unhook_modules(original))
            return
        original, is_compiling = module_class.__call__, self._is_compiling

        def __call__(self, *args, **kwargs):
            if is_compiling() or hooks.depth or hooks._unheard:
                return original(self, *args, **kwargs)
            hooks.depth = 1
            try:
                tell("forward", id(self))
                result = original(self, *args, **kwargs)
                hooks.recorder.called()
                return result
            finally:
                hooks.depth = 0

        __call__.steplens_original = original  # see `_own_call` of the session
        module_class.__call__ = self._hook = __call__
        self._let_pass(__call__)
        self._undo.append(lambda: self._unhook_modules(original))

    def _unhook_modules(self, original):
        """Give torch its ``Module.__call__`` back; where code was compiled with the hook there, it would be anew."""
        dynamo = sys.modules.get("torch._dynamo")
        counters = getattr(getattr(dynamo, "utils", None), "counters", {})
        if counters and counters.get("frames"):
            self._unheard = True
            return
        self.torch.nn.Module.__call__ = original
        self._let_pass(original)

    def _let_pass(self, call):
        """Tell ``torch.compile`` which ``Module.__call__`` it may pass over: the one that is there now."""
        for name in ("torch._dynamo.utils", "torch._dynamo.variables.nn_module"):
            if hasattr(sys.modules.get(name), KNOWN_CALL):
                setattr(sys.modules[name], KNOWN_CALL, call)

    def _hide_from_compiler(self, dynamo):
        """Have ``torch.compile`` pass over our functions: traced, they cut the program and do what they must not.

        Those of this module are read where compiled code calls them: there they only call what they stand for.
        """
        for name in ("trace_rules", "skipfiles"):  # the second one up to torch 2.2
            rules = getattr(dynamo, name, None)
            if hasattr(rules, "SKIP_DIRS") and hasattr(rules, "_recompile_re"):
                rules.SKIP_DIRS.append(_FILE_NAME.rpartition("/")[0] + "/")
                rules._recompile_re()
                getattr(rules, "BUILTIN_INLINE_WHEN_CALLED", set()).add(_FILE_NAME)
        getattr(dynamo, "on_compile_start", lambda _: None)(self._before_compiling)
        patcher = getattr(getattr(dynamo, "eval_frame", None), "TorchPatcher", None)
        if hasattr(patcher, "patch") and self.torch.__version__.startswith(("2.0.", "2.1.", "2.2.")):
            patcher.patch = staticmethod(self._hearing_steps(patcher.patch))
        if hasattr(dynamo, "disable"):
            self._apart = dynamo.disable(self._apart)
        if self._hook is not None and self._undo:
            self._let_pass(self._hook)

    def _hearing_steps(self, patch):
        """The compiler's ``patch``, of torch 2.0 to 2.2, takes hooks away from ``step``: hear of it all the same."""

        def told(original):
            @functools.wraps(original)
            def step(optimizer, *args, **kwargs):
                result = original(optimizer, *args, **kwargs)
                self._stepped(optimizer, args, kwargs)
                return result

            return step

        @functools.wraps(patch)
        def patched(*args, **kwargs):
            base = self.torch.optim.Optimizer
            kinds = [
                kind for kind in vars(self.torch.optim).values() if isinstance(kind, type) and issubclass(kind, base)
            ]
            hooked = {kind: kind.step for kind in kinds if getattr(kind.step, "hooked", False)}
            patch(*args, **kwargs)
            deaf = {kind: kind.step for kind in kinds if kind is not base and hooked.get(kind) is not kind.step}
            for kind, step in deaf.items():
                kind.step = told(step)

        return patched

    def _before_compiling(self, *unused):
        """The compiler's own work is no training: recorded with stacks, it fills the memory and takes far longer.

        In a window, which is what was asked for, it stays.
        """
        recorder = self.recorder
        if os.getpid() != self.pid or recorder.broken:
            return
        try:
            recorder.tools["early"].leave_out(recorder)
        except Exception as error:
            recorder.broken = True
            recorder.fail(error)

    def _hook_signs(self):
        """Calls that only training makes: where they come first, the first step has begun."""
        self._hook_sign(self.torch.Tensor, "backward", "backward")
        self._hook_sign(self.torch.optim.Optimizer, "zero_grad", "zeroed")

    def _hook_sign(self, owner, name, *event):
        original, tell, hooks = getattr(owner, name), self._tell, self
        is_compiling = self._is_compiling

        @functools.wraps(original)
        def sign(self, *args, **kwargs):
            if is_compiling():
                return original(self, *args, **kwargs)
            tell(*event)
            try:
                result = original(self, *args, **kwargs)
            finally:
                hooks._flush()
            hooks.recorder.called()
            return result

        setattr(owner, name, sign)
        self._undo.append(lambda: setattr(owner, name, original))

    def narrow(self):
        """Take back what is only needed to find the first sign of training."""
        while self._undo:
            self._undo.pop()()

    def widen(self):
        """Look for signs of training anew: the script's own profiler marks the steps no more."""
        if not self._undo:
            self._hook_modules()
            self._hook_signs()


def _is_fresh(iterator):
    """Whether a loader's iterator has given no batch yet."""
    return getattr(iterator, "_num_yielded", 0) == 0


def _is_exhausted(iterator):
    """Whether a loader's iterator is known to have no batch left."""
    try:
        return iterator._num_yielded >= len(iterator._index_sampler)
    except Exception:  # an iterable data set: nobody knows
        return False


def connect(recorder, finder, hooks):
    """Let events run from the hooks through the finder into the recorder.

    A fault of ours must not end the user's training: it is reported, and the rest of the run is not recorded.
    """

    def handle(event, args):
        if event == "script_step":
            recorder.marks_steps = False
        if not recorder.yielded and finder.begins_to_train(event, recorder.number):
            recorder.tools["last"].begin_anew(recorder)
        action = getattr(finder, event)(*args)
        if event == "script_done" and finder.source == "":
            recorder.marks_steps = True
            hooks.widen()
        if event == "stepped":
            recorder.stepped_at = time.perf_counter()
            recorder.checks.on_step()
            recorder.checks.on_wait(finder.waited_in_vain)
        if action is None and event != "script_step":
            return
        if recorder.phase == "whole" and recorder.config["step_source"] != "whole":
            recorder.drop_whole()
        if finder.settled:
            hooks.narrow()
        recorder.in_earnest = finder.in_earnest
        recorder.on_action(action, finder.source)

    def on_event(event, args):
        if recorder.broken:
            return
        try:
            handle(event, args)
        except Exception as error:
            recorder.broken = True
            recorder.fail(error)

    recorder.on_event = on_event
