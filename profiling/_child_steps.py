"""Finds the steps of a training loop that was never written with a profiler in mind.

Runs in the user's interpreter: standard library only, Python 3.8. It is a plain state machine without torch, so it can
be tested anywhere: the hooks tell it what the script does, and it answers with what that means for the steps.
"""

BEGIN = "begin"  # a step starts here, none was open
STEP = "step"  # the open step ends here and the next one starts
DROP = "drop"  # the open step was none
PAUSE = "pause"  # the open step ends here; what follows (evaluation, the end of an epoch) belongs to no step

# A loader that was asked (or a module called) this often without any optimizer stepping: nobody trains.
FETCHES_WITHOUT_STEP = 64
# An optimizer that stepped this often while another one never did: the other one is not part of the loop.
STEPS_WITHOUT_OTHERS = 6
FETCHED_AHEAD = 3  # fetches up to a loader's end, without any sign of training: more are no batches fetched ahead
SIGNS = ("backward", "zeroed", "stepped")  # events of training alone
MOST_PATIENCE = 200  # once the other one has stepped, what lies between its steps tells; but never longer than this
# So many optimizer steps after one fetch: the loader does not drive the loop (full-batch training).
STEPS_WITHOUT_FETCH = 8


class StepFinder:
    """Says where steps begin and end.

    Parameters
    ----------
    forced
        ``auto``, or one of ``optimizer``, ``loader``, ``module``, ``whole`` to look at nothing else.
    """

    def __init__(self, forced="auto"):
        self.forced = forced
        self.source = "" if forced == "auto" else forced
        self.in_step = False
        self.optimizers = set()  # made by the script, as far as seen
        self.ever_stepped = set()
        self._unused = set()  # made, but not part of the loop
        self._since = {}  # optimizer -> steps since the last boundary
        self._counts = {}  # optimizer -> its steps
        self._most = 0  # steps of the one that stepped most often
        self._most_at = {}  # optimizer -> that number when it last stepped itself
        self._patience = STEPS_WITHOUT_OTHERS
        self.waited_in_vain = 0  # steps that the first one covers, since an optimizer was waited for that never came
        self._driver = None  # the loader whose fetches begin the steps
        self._last_loader = None
        self._fetches_since = 0  # fetches since an optimizer stepped
        self._steps_since_fetch = 0
        self._loader_drives = True
        self._exhausted = False  # the loader was asked for a batch that is not there, before the last step was made
        self._lookahead = _Lookahead()
        self._worked = True  # an optimizer has stepped since the script's last mark
        self._zeroed = False  # an optimizer's zero_grad was seen
        self._trains = False  # a backward call was seen
        self._untrained = False  # a loader or a module told the steps; None: and it was seen whether they train
        self._forwards = 0
        self._called = set()  # outermost modules called in the open step

    @property
    def settled(self):
        """Whether what tells the steps is known for good, so that no first sign of training is waited for."""
        if self.source in ("", "module", "backward"):
            return False
        return self.source != "loader" or self.forced != "auto" or bool(self.ever_stepped)

    def begins_to_train(self, event, steps):
        """Whether so many ``steps`` were no training (statistics, an evaluation), which begins now; forgets them."""
        if event not in SIGNS or not self._untrained:
            return False
        self._untrained = None
        if not steps or self.forced != "auto" or self.source not in ("loader", "module"):
            return False
        self.source, self._driver, self.in_step, self._since, self._forwards = "", None, False, {}, 0
        self._lookahead = _Lookahead()
        return True

    @property
    def in_earnest(self):
        """Whether the steps are worth ending the script for, where that is wished: not those of a pass over the data
        in which no model is called, or that comes before the training for which an optimizer was made.
        """
        return self.forced != "auto" or not self._untrained or bool(self._forwards and not self.optimizers)

    def _without_training(self):
        self._untrained = True if self._untrained is False else self._untrained

    # What the hooks report; each answers BEGIN, STEP, PAUSE or None ---------------------------------------------

    def optimizer_made(self, key):
        """An optimizer was constructed."""
        self.optimizers.add(key)

    def optimizer_gone(self, key):
        """An optimizer was freed; its key may come again."""
        for keys in (self.optimizers, self.ever_stepped, self._unused):
            keys.discard(key)
        self._since.pop(key, None)
        self._counts.pop(key, None)
        self._most_at.pop(key, None)

    def script_step(self):
        """The script called ``step()`` on a profiler of its own: nobody knows its loop better."""
        if self.forced not in ("auto",):
            return None
        was, self.source, self._worked = self.source, "script", False
        if was == "optimizer" and self.in_step:
            return None  # the step that has just ended with its optimizer's is this one
        return self._boundary()

    def script_done(self):
        """The script's own profiler has stopped: what follows is found as if there had been none."""
        if self.source != "script":
            return None
        self.source, self._driver = "", None
        was, paused = self._worked, self._pause()
        return paused if was else paused and DROP

    def backward(self):
        """Backward is called: where there is neither optimizer, loader nor module, a step is from one to the next."""
        alone = not (self.optimizers or self._forwards or self._zeroed) and self._last_loader is None
        if self.forced != "auto" or self.source not in ("", "backward") or not alone:
            return self.activity(True)
        self.source = "backward"
        return self._boundary() if self.in_step and self._trains else self.activity(True)

    def zeroed(self):
        """An optimizer, maybe one made before anybody looked, sets its gradients to zero."""
        self._zeroed = True
        return self.activity(True)

    def activity(self, trains=False):
        """Something that belongs to training happened: a forward call, or (``trains``) backward or ``zero_grad``."""
        self._trains = self._trains or trains
        if self.forced == "whole" or self.in_step or self.source == "script" or self._driver is not None:
            return None
        return self._begin()

    def fetch(self, loader, ending=False, first=False):
        """A loader is asked for its next batch; ``ending``: it is known to have none left; ``first``: of an epoch."""
        if self.source == "script" or self.forced not in ("auto", "loader") or not self._loader_drives:
            return None
        self._last_loader = loader
        self._exhausted = False
        self._fetches_since += 1
        self._steps_since_fetch = 0
        if self.forced == "loader" or self._nobody_trains():
            return self._fetch_without_optimizer(loader, ending)
        if ending and self._fetches_since > FETCHED_AHEAD and not (self._trains or self.ever_stepped):
            self._last_loader, self._fetches_since = None, 0  # all batches were collected before anybody trains
            return None
        if self._driver in (None, loader):
            self._lookahead.fetched(first, ending)
        self._exhausted = ending and not self._since  # loaders that fetch ahead (accelerate) end one step early
        if not self._since:  # no optimizer stepped since the last boundary: accumulation, evaluation, or a new epoch
            if not self.in_step and not ending and (self._driver in (None, loader) or not self.ever_stepped):
                return self._begin()
            return None
        if ending and loader == self._driver and self._lookahead.left:
            return self._boundary()  # the batches fetched ahead are still to be trained on
        if ending or (self._driver is not None and loader != self._driver):
            return self._pause()
        return self._boundary()

    def stepped(self, key):
        """An optimizer finished a step."""
        self._worked = True
        if self.source == "script" or self.forced not in ("auto", "optimizer"):
            return None
        self.optimizers.add(key)
        self.ever_stepped.add(key)
        self._unused.discard(key)
        self._since[key] = self._since.get(key, 0) + 1
        self._learn_patience(key)
        self._fetches_since = 0
        self._steps_since_fetch += 1
        if self.forced == "auto" and self._loader_drives and self._last_loader is not None:
            if self._steps_since_fetch <= STEPS_WITHOUT_FETCH:
                self._driver = self._last_loader
                self.source = "loader"
                return self._step_of_loader() if self._all_stepped() else None
            self._loader_drives, self._driver = False, None
        self.source = "optimizer"
        return self._boundary() if self._all_stepped() else None

    def forward(self, module=None):
        """An outermost module is called: a step begins with the first that was called in the open step already."""
        if self.source == "script" or self.forced not in ("auto", "module"):
            return None
        self._forwards += 1
        if self.forced == "auto" and (self._last_loader is not None or self.optimizers and not self._only_calls()):
            return self.activity()
        self.source = "module"
        self._without_training()
        if self.in_step and module not in self._called:
            self._called.add(module)
            return None
        self._called = {module}
        return self._boundary() if self.in_step else self._begin()

    def _only_calls(self):
        """Whether there is an optimizer, but nobody trains."""
        return not self._trains and not self.ever_stepped and self._forwards > FETCHES_WITHOUT_STEP

    # ------------------------------------------------------------------------------------------------------------

    def _step_of_loader(self):
        """Every optimizer has stepped, in a loop that a loader drives."""
        if self._lookahead.left:
            self._lookahead.left -= 1
            return self._boundary() if self._lookahead.left else self._pause()
        self._lookahead.trained(self._exhausted)
        return self._pause() if self._exhausted else None

    def _nobody_trains(self):
        if not self.optimizers:
            return True
        return not self.ever_stepped and self._fetches_since > FETCHES_WITHOUT_STEP

    def _fetch_without_optimizer(self, loader, ending):
        if self._driver is None or (not self.in_step and not ending):
            self._driver = loader
        if loader != self._driver:
            return None
        self.source = "loader"
        self._without_training()
        if ending:
            return self._pause() if self.in_step else None
        return self._boundary() if self.in_step else self._begin()

    def _learn_patience(self, key):
        """An optimizer that steps seldom is waited for as long as twice what lay between its steps so far."""
        self._patience = max(self._patience, min(2 * (self._most - self._most_at.get(key, 0)), MOST_PATIENCE))
        self._counts[key] = self._counts.get(key, 0) + 1
        self._most = max(self._most, self._counts[key])
        self._most_at[key] = self._most

    def _all_stepped(self):
        missing = self.optimizers - set(self._since) - self._unused
        if missing and max(self._since.values()) >= self._patience:
            if not missing & self.ever_stepped:
                self.waited_in_vain = self.waited_in_vain or max(self._since.values())
            self._unused |= missing
            missing = set()
        return not missing

    def _begin(self):
        self.in_step = True
        return BEGIN

    def _boundary(self):
        self._since = {}
        was, self.in_step = self.in_step, True
        return STEP if was else BEGIN

    def _pause(self):
        self._since = {}
        was, self.in_step = self.in_step, False
        return PAUSE if was else None


class _Lookahead:
    """How many batches a loop fetches before it trains on them: so many steps follow when its loader has run out."""

    def __init__(self):
        self.ahead = 0
        self.left = 0  # steps that are still to come, after the loader has run out
        self._fetches = self._trained_at = self._first_at = 0  # of this epoch
        self._ended = self._wrong = False

    def fetched(self, first, ending):
        """The driving loader is asked for a batch."""
        if first:
            if self.left:  # they never came
                self.ahead, self._wrong = 0, True
            self.left = self._fetches = self._trained_at = self._first_at = 0
        self._ended = ending
        if ending:
            self.left = self.ahead
        else:
            self._fetches += 1

    def trained(self, flushed):
        """All optimizers have stepped; compares the fetches before the first step with those between two steps.

        ``flushed``: the step is that of batches that were accumulated before the loader ran out.
        """
        if self._wrong or flushed:
            return
        if self._ended:  # a step after the last batch was asked for, in an epoch too short to tell before
            self.ahead = max(self.ahead, 1)
        elif self._fetches != self._trained_at:
            if self._first_at and self._trained_at == self._first_at:
                self.ahead = max(self.ahead, 2 * self._first_at - self._fetches)
            self._first_at = self._first_at or self._fetches
            self._trained_at = self._fetches
