"""Decides, step by step, what is recorded: an early recording, a timing without the profiler, then the window.

Runs in the user's interpreter: standard library and torch only, Python 3.8.

The early recording (``_child_early.py``) begins with the first sign of training and is kept only where the script ends
before the window is full.
"""

import os
import threading
import time

LOCK_SECONDS = 2.0  # that a script which ends itself abruptly waits for what another thread records
BASE_STEPS = 3  # steps recorded without the marks of a line-range round, to know what these cost

IDLE, WHOLE, EARLY, SKIP, WALL, BASE, SYNC, PRIME, WINDOW, DONE = (
    "idle", "whole", "early", "skip", "wall", "base", "sync", "prime", "window", "done",
)  # fmt: skip


class EndOfRun(SystemExit):
    """Ends a script whose window is written, where the user asked for that."""


class Recorder:
    """Turns the finder's answers into recordings.

    Parameters
    ----------
    torch
        The module.
    config
        The launcher's wishes, see ``profiling.run``.
    report
        Where events go.
    tools
        The sibling modules by their last name, as ``_child.py`` lists them.
    """

    def __init__(self, torch, config, report, tools):
        self.torch, self.config, self.report, self.tools = torch, config, report, tools
        schedule = config["schedule"]
        self.lead = schedule["skip"] + schedule["warmup"]
        self.active, self.repeat = schedule["active"], schedule["repeat"]
        self.phase = IDLE
        self.session, self.kept = None, None  # kept: the early recording, until a window is written
        self.number = 0  # of the step that is open, or comes next
        self.cycle, self.rank = 0, None
        self.ranges = config.get("ranges")  # marks of lines, None where none are wished for
        self.broken = False  # a fault of ours: hands off for the rest of the run
        self.yielded = False  # the script's own profiler has the floor
        self.script_number = 0  # of the script's own profiler, in the name of the mark that it ended last
        self.marks_steps = True  # False: the script's own prof.step() marks them
        self.in_step, self.source, self.traces, self.in_earnest = False, "", [], True
        self.step_times = []  # (number, phase, microseconds)
        self.wall = []  # (steps, microseconds, pace)
        self.ahead = 0  # batches that a loader's workers keep ready
        self.stepped_at = 0.0  # when an optimizer last stepped in the open step, or a call that makes a step ended
        self._left = 0  # steps until the phase ends
        self.step_began = 0.0
        self.clock = tools["clock"].Clock(lambda: tools["session"].synchronize(torch), tools["pace"].Pace())
        self._whole = tools["whole"].Whole(self)
        self._rest = lambda: tools["session"].steps_of_rest(torch, self.number)
        self._to_window = 1 + BASE_STEPS * (self.ranges is not None)  # steps from the timing to the window, at least
        needed = self.lead + tools["clock"].LEAST_STEPS * config["measure_wall"] + self._to_window + self.active
        self._early = tools["early"].Early(self, tools["loops"], needed)
        self.checks = tools["checks"].Checks(torch, report)
        self._guard = tools["guard"].Guard(self)
        self.lock = threading.RLock()
        self.on_phase = self.on_counted = lambda _: None  # get the phase, and the number of steps that have ended

    # What the finder says -----------------------------------------------------------------------------------------

    def on_action(self, action, source):
        """A step began, ended or both; called by the thread that runs the loop."""
        if action is None or self.phase == DONE and not self.yielded:
            if action in ("step", "pause"):
                self.count(time.perf_counter())
            return
        with self.lock:
            self.source = source
            self._guard.on_boundary(time.perf_counter(), self.in_step and action != "begin")
            if action in ("step", "pause") and self.in_step:
                self._end_step()
            if action == "drop":
                self.tools["last"].drop_step(self)
            if action in ("begin", "step"):
                self._begin_step()

    def called(self):
        """The outermost module's call, or a backward pass, has ended."""
        self.stepped_at = time.perf_counter() if self.source in ("module", "backward") else self.stepped_at

    def count(self, now):
        """A step has ended."""
        self.step_times.append((self.number, self.phase, (now - self.step_began) * 1e6))
        if len(self.step_times) > 20000:  # a long run: the first ones and the newest ones are enough
            del self.step_times[5000:10000]
        self.number += 1
        self.on_counted(self.number)
        self.step_began, self.stepped_at = time.perf_counter(), 0.0
        self.report.progress(self.number, self.phase, *self._done_of_total())

    def _end_step(self):
        if self.session is not None and self.session.running:
            self.session.end_step()
        self.in_step = False
        self.count(time.perf_counter())
        if self.yielded:
            return  # the script's profiler records this: it is none of our steps, nor one without a profiler
        self._left -= 1
        end = getattr(self, "_end_" + self.phase, None)
        if end is not None:
            end()

    def _begin_step(self):
        if self.rank is None:
            self.rank = self.tools["procs"].rank_of(self.torch)
        begin = getattr(self, "_begin_" + self.phase, None)
        if begin is not None and not self.yielded:
            begin()
        self.in_step, self.stepped_at = True, 0.0
        self.checks.on_step()
        if self.phase == WALL and not self.clock.runs and not self.yielded:
            self.clock.start()
        if self.session is not None and self.session.running:
            self.session.begin_step(self.number, self.marks_steps)
        self.step_began = time.perf_counter()

    # The phases: what happens when a step begins, and when one ended --------------------------------------------

    def _begin_idle(self):
        if self.config["spawned"] and not self.tools["procs"].may_be_recorded(self.torch, self.report):
            self.to(DONE)
            return
        if self.lead == 0:
            self.to(WINDOW)
            self._open_window()
            return
        self._early.begin()

    _begin_whole = _begin_idle

    def _end_early(self):
        if self._early.over():
            self._close_session()
            self.kept, self.session = self.session, None
            self._after_lead()

    def _end_skip(self):
        if self._left <= 0:
            self._after_lead()

    def _after_lead(self):
        if self.config["measure_wall"] and self.cycle == 0:
            self.clock.reset(self._early.passing(self.tools["clock"].ENOUGH_STEPS + self._to_window + self.active))
            self.to(WALL)
        else:
            self._after_wall()

    def _end_wall(self):
        foreseen, needed = self._early.foreseen, self._to_window + self.active + self.config["sync_lines"]
        if self.clock.ended(None if foreseen is None else foreseen - self.number - needed):
            self.clock.stop()
            self.wall.append((self.clock.steps, self.clock.us, self.clock.pace.found()))
            self._after_wall()

    def _after_wall(self):
        if self.ranges is not None and self.cycle == 0 and self._rest() == 1 and self.ranges.rest():
            self.to(BASE, BASE_STEPS)
        else:
            self._after_base()

    def _begin_base(self):
        if self.session is None:
            self.open_session()

    def _end_base(self):
        if self._left <= 0:
            self._drop_session()
            self._after_base()

    def _after_base(self):
        if self.ranges is not None:
            self.ranges.wake()
        if self.config["sync_lines"] and self.cycle == 0 and self.tools["sync"].possible(self.torch):
            self.to(SYNC, 1)
        else:
            self.to(PRIME, self._rest())

    def _begin_sync(self):
        self.watch = self.tools["sync"].SyncWatch(self.torch, self.config["is_users"])
        self.watch.start()

    def _end_sync(self):
        self.watch.stop()
        self.report.saved(self.watch.save, self.report.in_folder("sync_lines.json"), "lines")
        self.to(PRIME, self._rest())

    def _begin_prime(self):
        if self.session is None:
            self.session = self.new_session()
            self.session.prepare()

    def _end_prime(self):
        if self._left <= 0:
            self.to(WINDOW, self.active)

    def _begin_window(self):
        if self.session is None or not self.session.running:
            self._open_window()

    def _open_window(self):
        self._left = self.active
        self.open_session()

    def _end_window(self):
        if self._left <= 0:
            with self.tools["report"].Undisturbed():
                self._close_session()
                self._keep_trace(self.session)
                self.session = self.kept = None
            self.cycle += 1
            if self.cycle < self.repeat:
                self.to(SKIP, max(1, self.lead))
            else:
                self._finish_windows()

    def _finish_windows(self):
        self.to(DONE)
        if self.config["stop_after_window"] and (self.in_earnest or self.tools["last"].never_trains(self.config)):
            self.report.send("ending", reason="window")
            if threading.current_thread() is not threading.main_thread():
                import signal

                signal.raise_signal(signal.SIGINT)
                return
            raise EndOfRun(0)

    # Recordings -------------------------------------------------------------------------------------------------

    def to(self, phase, left=0):
        """Go on to another phase, of ``left`` steps."""
        self.phase, self._left = phase, left
        self.on_phase(phase)
        self.report.send("phase", phase=phase, step=self.number)

    def _done_of_total(self):
        least = self.tools["clock"].LEAST_STEPS
        total = {WINDOW: self.active, SKIP: self.lead, EARLY: self.lead, WALL: least}.get(self.phase, 0)
        if self.phase in (EARLY, WALL):
            return min(self.number if self.phase == EARLY else self.clock.steps, total), total
        return (total - max(0, self._left), total) if total else (0, 0)

    def new_session(self, all_threads=False, **changes):
        """Make a recording with the user's options, but for ``changes``; not started."""
        asked = self.config["options"]
        options = dict(asked, **changes)
        session = self.tools["session"].Session(self.torch, options, all_threads)
        session.left_out = [name for name in sorted(asked) if asked[name] and not options[name]]
        return session

    def open_session(self):
        """Start the recording that is due, made with the user's options unless it is there."""
        if self.session is None:
            self.session = self.new_session()
        self.session.start()
        self._guard.watch()

    def _drop_session(self):
        session, self.session = self.session, None
        if session is not None and session.running:
            session.stop()

    def _close_session(self):
        self.report.send("phase", phase="saving", step=self.number)
        self.session.stop()

    def _keep_trace(self, session):
        stem = "trace"
        if self.config["spawned"]:
            stem += "-pid%d" % os.getpid() if self.rank is None else "-rank%d" % self.rank
        if self.traces:
            stem += "-%d" % (len(self.traces) + 1)
        path = self.report.in_folder(stem + ".json")
        if not self.report.saved(session.save, path):
            return
        lines = self.report.in_folder("lines.json" if stem == "trace" else stem + ".lines.json")
        if self.config["options"]["stacks"]:
            try:
                session.save_lines(lines, self.config["is_users"])
            except Exception as error:
                self.report.notice("lines", error=repr(error))
        self.traces.append(path)
        self.checks.on_trace(session.devices, path)
        self.report.send(
            "trace", path=path, kind="own", steps=session.steps, source=self.source, devices=session.devices,
            unfinished=session.open_step, phase=self.phase, marked=self.marks_steps, rank=self.rank,
            events=None if session.steps else session.size(), left_out=session.left_out,
        )  # fmt: skip

    # The script's own profiler ------------------------------------------------------------------------------------

    def give_way(self):
        """The script's own profiler is about to start: stop ours, keep what it has."""
        with self.lock:
            if self.yielded:
                return
            self.yielded = True
            self.clock.reset()
            if self.ranges is not None:
                self.ranges.wake()
            self.cut()

    def cut(self):
        """End the recording that is on, and keep what it has; with the lock held."""
        session, self.session = self.session, None
        if session is None:
            return
        if session.running:
            session.stop()
            if session.steps and self.phase != BASE:
                self.kept = self.tools["early"].better(session, self.kept)
        if self.phase in (PRIME, WINDOW, EARLY, WHOLE, BASE):
            anew = self.phase == EARLY and not session.steps and not self.yielded
            self.to(IDLE if anew else SKIP, 1)

    def take_back(self):
        """The script's own profiler has stopped: ours may go on where it was cut."""
        with self.lock:
            self.yielded, self.tools["session"].Session.stacks_until = False, self.number

    # The end ----------------------------------------------------------------------------------------------------

    def start_whole(self):
        """Record from here on, whatever comes."""
        self._whole.start(WHOLE)

    def drop_whole(self):
        """Training begins: the recording of the start-up is not needed."""
        self._whole.stop_timer()
        with self.lock:
            self.phase = IDLE
            self._drop_session()

    def finish(self, abrupt=False):
        """The script has ended: write what there is, if no window was written.

        ``abrupt``: it may have ended anywhere, in a thread that must not stop what another one records or waits for.
        """
        self._whole.stop_timer()
        if not self.lock.acquire(timeout=LOCK_SECONDS if abrupt else -1):
            return
        try:
            if abrupt and self.session is not None and not self.session.may_stop_here():
                self.session = None
            self.tools["last"].end_step(self)
            if self.phase == BASE:  # the marks are missing in it
                self._drop_session()
            session, self.session = self.session, None
            if self.phase == SYNC and getattr(self, "watch", None) is not None:
                self.watch.stop()
            if session is not None and session.running:
                self.report.send("phase", phase="saving", step=self.number)
                session.stop()
                self._keep_last(session)
            elif session is not None and session.stopped:
                self._keep_last(session)
            elif self.kept is not None and not self.traces:
                self.report.send("phase", phase="saving", step=self.number)
                self._keep_trace(self.kept)
            self.phase = DONE
        finally:
            self.lock.release()

    def fail(self, error):
        """Report a fault of ours and let go of whatever runs."""
        import traceback

        self.report.send("recording_failed", error=repr(error), traceback=traceback.format_exc())
        try:
            if self.session is not None:
                self.session.stop()
        except Exception:
            pass
        self.session = None

    def _keep_last(self, session):
        if not self.traces:  # where the window had just begun, the early recording tells more
            session = self.tools["early"].better(session, self.kept)
        if session.steps or (not self.traces and session.size() > 0):
            self._keep_trace(session)

    def summary(self):
        """What the manifest says about the steps."""
        apart = self.clock.pace.apart() if self.wall else None
        return {
            "source": self.source, "steps": self.number, "times": self.step_times[-20000:], "wall": self.wall,
            "marked": self.marks_steps, "rank": self.rank, "spawned": self.config["spawned"], "loop_us": apart,
        }  # fmt: skip
