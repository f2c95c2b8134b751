"""The script's own profiler: it keeps its schedule, ours gives way, and neither trace is lost.

torch runs one profiler at a time, and a second one silently takes the session of the first (which then crashes when it
writes its trace), so ours has stopped before the script's starts.

Runs in the user's interpreter: standard library and torch only, Python 3.8, torch 2.0 and newer.
"""

import functools
import os
import shutil

MOST_HELD = 8  # profilers of torch.autograd kept in memory until the end, in case nobody writes what they recorded


class Foreign:
    """Watches the profilers that the script makes.

    Parameters
    ----------
    torch, recorder, report
        The module, a ``Recorder`` and a ``Report``.
    session_class
        The class of our own recordings, which knows the profilers that are ours.
    """

    def __init__(self, torch, recorder, report, session_class):
        self.torch, self.recorder, self.report = torch, recorder, report
        self.ours = session_class.ours
        self.made = []  # profile objects of the script
        self.recorded = []  # those which became active
        self.plain = []  # profilers of torch.autograd that the script used by themselves, the first ones
        self._exporting = False
        self.exported = set()
        self.active = None
        self.stepped = False
        self.stepping = None  # a profile whose ``step`` is on
        self.count = 0

    def install(self):
        """Hook in."""
        self._hook_autograd_profiler()
        self._hook_profile()

    def follow(self, recorder):
        """Go on in a forked child, with a recorder of its own; what the parent's profilers hold is the parent's."""
        self.recorder, self.active = recorder, None
        self.made, self.recorded, self.plain = [], [], []

    def _is_ours(self, autograd_profile):
        return autograd_profile in self.ours or None in self.ours

    def _hook_autograd_profiler(self):
        profile_class, foreign = self.torch.autograd.profiler.profile, self
        for name in ("_prepare_trace", "_start_trace", "__enter__"):
            _wrap(profile_class, name, before=foreign._before_start)
        _wrap(profile_class, "__exit__", after=foreign._after_stop)
        original = profile_class.export_chrome_trace

        @functools.wraps(original)
        def export_chrome_trace(self, path, *args, **kwargs):
            result = original(self, path, *args, **kwargs)
            if not foreign._exporting and not foreign._is_ours(self):
                foreign._collect(self, path)
            return result

        profile_class.export_chrome_trace = export_chrome_trace

    def _before_start(self, autograd_profile):
        if not self._is_ours(autograd_profile) and getattr(autograd_profile, "enabled", True):
            if self.active is None:
                self.report.send("foreign", state="active")
            self.active = autograd_profile
            self.recorder.give_way()

    def _after_stop(self, autograd_profile):
        if self.active is autograd_profile:
            self.active = None
            self.recorder.take_back()
            if len(self.plain) < MOST_HELD and autograd_profile not in [p.profiler for p in self.made]:
                self.plain.append(autograd_profile)

    def _hook_profile(self):
        base, full = self.torch.profiler._KinetoProfile, self.torch.profiler.profile
        foreign = self

        def made(profile):
            foreign.made.append(profile)
            foreign.report.send("foreign", state="made")

        def steps(profile):
            foreign.stepped, foreign.stepping = True, profile

        def between(profile):
            if foreign.stepping is profile:
                foreign.stepping = None
                foreign.recorder.on_event("script_step", ())

        def started(profile):
            if profile.profiler is None or not foreign._is_ours(profile.profiler):
                foreign.recorded.append(profile)

        _wrap(full, "__init__", after=made)

        def stopped(profile):
            foreign.recorder.script_number = profile.step_num
            foreign.recorder.on_event("script_done", ())

        _wrap(full, "step", before=steps, after=between)
        _wrap(full, "stop", after=stopped)
        _wrap(full, "_transit_action", before=between)  # the range of a step has ended, that of the next not begun
        _wrap(base, "start_trace", after=started)
        original = base.export_chrome_trace

        @functools.wraps(original)
        def export_chrome_trace(self, path, *args, **kwargs):
            foreign._exporting = True
            try:
                result = original(self, path, *args, **kwargs)
            finally:
                foreign._exporting = False
            if self.profiler is not None and not foreign._is_ours(self.profiler):
                foreign._collect(self.profiler, path)
            return result

        base.export_chrome_trace = export_chrome_trace

    def _collect(self, autograd_profile, path):
        """Copy a trace that the script has just written into the run folder."""
        self.exported.add(id(autograd_profile))
        try:
            self.count += 1
            suffix = ".json.gz" if str(path).endswith(".gz") else ".json"
            target = self.report.in_folder(self._stem() + suffix)
            shutil.copyfile(path, target + ".partial")
            os.replace(target + ".partial", target)
            self.report.send("trace", path=target, kind="script", written_as=os.path.abspath(path))
        except OSError as error:
            self.report.notice("script-trace-copy", error=str(error))

    def _stem(self):
        """File name without its ending; processes of one run share the folder."""
        process = "-pid%d" % os.getpid() if self.recorder.config["spawned"] else ""
        return "script-trace%s-%d" % (process, self.count)

    def finish(self):
        """Write what the script's profiler recorded and its handler never wrote."""
        for inner in [profile.profiler for profile in self.recorded] + self.plain:
            if inner is None or id(inner) in self.exported or getattr(inner, "kineto_results", None) is None:
                continue
            self.exported.add(id(inner))
            self.count += 1
            target = self.report.in_folder(self._stem() + ".json")
            try:
                inner.kineto_results.save(target + ".partial")
                os.replace(target + ".partial", target)
                self.report.send("trace", path=target, kind="script", written_as="")
            except Exception as error:
                self.report.notice("script-trace", error=str(error))
        idle = [p for p in self.made if p not in self.recorded]
        if idle and not self.recorded:
            self.report.notice("script-profiler-idle" if self.stepped else "script-profiler-never-stepped")


def _wrap(cls, name, before=None, after=None):
    """Call ``before(self)`` or ``after(self)`` around a method; the method stays what it was to its callers."""
    original = getattr(cls, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def wrapper(self, *args, **kwargs):
        if before is not None:
            before(self)
        result = original(self, *args, **kwargs)
        if after is not None:
            after(self)
        return result

    setattr(cls, name, wrapper)
