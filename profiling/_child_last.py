"""The last step of a loop: nothing follows that would end it, or it was none; and steps that were all none.

Runs in the user's interpreter: standard library only, Python 3.8.
"""

import re
import sys
import time

SOON = 0.5  # of the step: what follows its optimizer for longer than this is not of the loop any more
TRAINING = re.compile(rb"backward|optim|zero_grad|autograd|\b(?:fit|train)\(|[Tt]rainer")  # words of training
LARGEST_SOURCE_BYTES = 1_000_000
AS_USUAL = 1.5  # times the step before: a step of calls that took longer was followed by something else


def end_step(recorder):
    """End the open step where its optimizer has stepped, or its call has ended; its mark only if it was left soon."""
    calls = recorder.source in ("module", "backward")
    if not recorder.in_step or not recorder.stepped_at or not (calls or recorder.source == "loader"):
        return
    if calls and getattr(sys, "last_value", None) is not None:
        return  # an error that nobody caught: it was left in the middle
    now, session = time.perf_counter(), recorder.session
    if calls:  # the work that follows the call belongs to the step
        usual = recorder.step_times[-1][2] * 1e-6 if recorder.step_times else 0.0
        soon = now - recorder.step_began <= AS_USUAL * usual
    else:
        soon = now - recorder.stepped_at <= SOON * (recorder.stepped_at - recorder.step_began)
    if soon and session is not None and session.running:
        session.end_step()
    recorder.in_step = False
    recorder.count(now)


def begin_anew(recorder):
    """What was recorded so far was no training, which begins now: as if nothing had been; a trace is written anew."""
    with recorder.lock:
        session, recorder.session, recorder.kept = recorder.session, None, None
        if session is not None and session.running:
            session.stop()
        if recorder.phase == "sync":
            recorder.watch.stop()
        if recorder.ranges is not None:
            recorder.ranges.wake()
        recorder.clock.reset()
        recorder.number, recorder.cycle, recorder.in_step = 0, 0, False
        recorder.traces, recorder.step_times, recorder.wall = [], [], []
        recorder.to("idle")


def never_trains(config):
    """Whether no file of the user's that was imported speaks of training, which might come yet."""
    seen = False
    for module in list(sys.modules.values()):
        name = getattr(module, "__dict__", {}).get("__file__")  # asking a lazy module may import it
        path = config["is_users"](name) if isinstance(name, str) else ""
        if path:
            seen = True
            try:
                with open(path, "rb") as source:
                    if TRAINING.search(source.read(LARGEST_SOURCE_BYTES)):
                        return False
            except OSError:
                return False
    return seen


def drop_step(recorder):
    """The script's own profiler has stopped, and nothing ran in the step that it had begun."""
    recorder.in_step = False
    if recorder.session is not None and recorder.session.running:
        recorder.session.drop_step(recorder.script_number)
        recorder.cut()
