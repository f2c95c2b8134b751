"""What a rule is, and what it says.

A rule finds; it does not price. It states the *effect* of its fix on the dependency graph (`Effect`), and
`core.pricing` works out from the replay what that saves, alone and in the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, Flag, auto
from typing import TYPE_CHECKING, Any

from core.words import fill

if TYPE_CHECKING:
    from core.figures.model import Figures
    from core.source import SourceFinder
    from core.trace import Trace


class Needs(Flag):
    """What a trace must hold for a rule to be able to decide; unmet gives NOT_CHECKED with the reason."""

    NOTHING = 0
    DEVICE = auto()  # device work recorded
    STEPS = auto()  # at least one (also inferred) step
    STACKS = auto()  # python_function slices
    SHAPES = auto()  # Input Dims recorded
    MEMORY = auto()  # [memory] events
    RANKS = auto()  # more than one rank
    OPS = auto()  # operators of the CPU
    CALLS = auto()  # calls of the GPU's runtime
    KERNELS = auto()  # kernels among the device work
    WAITS = DEVICE | OPS | CALLS  # all that shows who waits for the device, and where


@dataclass(frozen=True)
class Param:
    """A threshold of a rule: its default, its unit and why it is what it is."""

    name: str
    default: float
    unit: str
    why: str


@dataclass(frozen=True)
class Rule:
    """Declaration of one rule; the module that holds it also has ``check``.

    ``title`` and the other texts are templates in English with ``{named}`` values; the values travel beside them, so
    that the window can translate the template by rule id.
    """

    id: str
    title: str
    needs: Needs = Needs.NOTHING
    params: tuple[Param, ...] = ()
    severity_floor: str = "low"


@dataclass(frozen=True)
class SourceRef:
    """A place in the user's code. ``exact`` is False where the line is that of the ``def`` or one of several."""

    file: str
    line: int
    function: str
    exact: bool = False
    reason: str = ""  # how the line was found
    candidates: tuple[int, ...] = ()  # other lines that could be meant
    also: tuple[int, ...] = ()  # lines of the same function that are meant as well: the fault is at all of them


class EffectKind(Enum):
    """How a fix changes the dependency graph of the recorded steps."""

    REMOVE_WAIT = "remove_wait"  # these host calls no longer block; they and the copy they wait for stay
    REMOVE_WORK = "remove_work"  # these CPU slices, all below them, and the device work they launch are gone
    MAKE_ASYNC = "make_async"  # these blocking copies return at once; the copy stays on its stream
    OVERLAP_COPY = "overlap_copy"  # as MAKE_ASYNC, and the copy moves to a stream of its own
    SCALE_HOST = "scale_host"  # the CPU time of these slices (all below included) is multiplied by `factor`
    SCALE_DEVICE = "scale_device"  # the duration of these device slices is multiplied by `factor`
    FUSE = "fuse"  # the device work under these CPU slices becomes one launch per slice, durations x `factor`


@dataclass(frozen=True)
class Effect:
    """One change of the graph: ``slices`` are slice ids (CPU ones, except for SCALE_DEVICE).

    ``assumed``: how much it changes is an assumption, which the suggestion's text states; the saving is then called
    rough, however well the replay fits. A factor between nothing and all of the work always is one.
    """

    kind: EffectKind
    slices: tuple[int, ...]
    factor: float = 0.0
    assumed: bool = False

    @property
    def is_assumed(self) -> bool:
        """Whether the size of the change is assumed, not read from the trace."""
        scales = self.kind in (EffectKind.SCALE_HOST, EffectKind.SCALE_DEVICE, EffectKind.FUSE)
        return self.assumed or (scales and self.factor not in (0.0, 1.0))


@dataclass(frozen=True)
class Evidence:
    """A claim that can be looked at: ``slices`` is never empty for a claim about the trace."""

    label: str
    value: float | int | str | None
    unit: str
    slices: tuple[int, ...]


@dataclass(frozen=True)
class Fix:
    """What to do, as text and as code. ``risk`` says what could go wrong."""

    summary: str
    before: str = ""
    after: str = ""
    url: str = ""
    risk: str = ""


@dataclass(frozen=True)
class Saving:
    """What a suggestion saves per step. ``ns`` None is unknown, never invented."""

    ns: int | None = None
    pct: float | None = None  # of the sustained step now
    basis: str | None = None  # replayed | measured | bounded | rough; None exactly when ns is None
    together_ns: int | None = None  # extra saving in the plan, after the fixes before it
    freed_host_ns: int | None = None  # CPU time (waiting included) that the fix frees, whether or not it saves any


@dataclass(frozen=True)
class Suggestion:
    """One fault at one place. Rules leave ``saving`` and ``severity`` to the pricing."""

    rule_id: str
    title: str  # template
    values: Mapping[str, Any] = field(default_factory=dict)  # named values of the templates
    why: str = ""  # template: why it costs time, for a newcomer, with this trace's figures
    occurrences: int = 0
    steps: tuple[int, ...] = ()  # rows of the step table
    source: SourceRef | None = None
    evidence: tuple[Evidence, ...] = ()
    fix: Fix = Fix("")
    effects: tuple[Effect, ...] = ()  # empty: advice without a graph change; saving stays unknown
    informational: bool = False  # hygiene and notes: never headlined, not part of the plan
    severity: str = "low"  # high | medium | low
    saving: Saving = Saving()
    more: tuple[str, ...] = ()  # templates of further sentences of the explanation, the same for several rules
    costs_ns: float | None = None  # per step, where no saving can be foretold: by it the suggestion is placed
    ordinal: int = 1  # among those of one rule, place and operators, in the order of the trace; see `numbered`

    @property
    def headline(self) -> str:
        """The title with its values filled in."""
        return fill(self.title, self.values)

    @property
    def explanation(self) -> str:
        """``why`` and the sentences after it, with their values filled in."""
        return " ".join(fill(words, self.values) for words in (self.why, *self.more) if words)

    @property
    def key(self) -> str:
        """Identity inside one trace, the same in every run over it: rule, place, operators, number among equals.

        No line: it can become known later, and lines move.
        """
        op = str(self.values.get("op_path", "")) if self.source else ""
        return f"{self.place_key}|{op}#{self.ordinal}"

    @property
    def place_key(self) -> str:
        """Rule and function (or operators): what `key` was at first. Several suggestions can share it.

        ``values["seen_in"]`` is the function in which it was seen, where the source is that in which it is made.
        """
        if self.source is None:
            return f"{self.rule_id}|{self.values.get('op_path', '')}"
        return f"{self.rule_id}|{self.source.file}:{self.values.get('seen_in', self.source.function)}"

    @property
    def is_about_recording(self) -> bool:
        """A note on the recording as a whole: its evidence is an example, and no place to be taken to."""
        return self.informational and self.occurrences <= 1 and not self.steps and self.source is None

    def priced(self, saving: Saving, severity: str) -> Suggestion:
        """Return a copy with a saving and a severity."""
        return replace(self, saving=saving, severity=severity)


def numbered(found: Iterable[Suggestion]) -> tuple[Suggestion, ...]:
    """Return the suggestions, those that would share a key numbered in the order in which their evidence ran."""
    suggestions = list(found)
    same: dict[str, list[int]] = {}
    for at, suggestion in enumerate(suggestions):
        first = suggestion if suggestion.ordinal == 1 else replace(suggestion, ordinal=1)
        same.setdefault(first.key, []).append(at)
    for places in same.values():
        if len(places) > 1:
            places.sort(key=lambda at: (min((i for e in suggestions[at].evidence for i in e.slices), default=-1), at))
        for number, at in enumerate(places, 1):
            if suggestions[at].ordinal != number:
                suggestions[at] = replace(suggestions[at], ordinal=number)
    return tuple(suggestions)


class Outcome(Enum):
    """What became of a rule on a trace."""

    FOUND = "found"
    CLEAN = "clean"
    NOT_CHECKED = "not_checked"
    FAILED = "failed"


@dataclass(frozen=True)
class RuleResult:
    """Outcome of one rule: ``reason`` says why it was not checked or how it failed (with ``details``)."""

    rule: Rule
    outcome: Outcome
    reason: str = ""
    suggestions: tuple[Suggestion, ...] = ()
    details: str = ""


class NotChecked(Exception):
    """Raised by a rule that finds, while looking, that the trace cannot decide; the text says why and the cure."""


@dataclass(frozen=True)
class RuleContext:
    """All that a rule may look at."""

    trace: Trace
    figures: Figures
    params: Mapping[str, float]
    source: SourceFinder
    shared: dict[str, Any] = field(default_factory=dict)  # look-ups that the rules of one run share


Check = Callable[[RuleContext], list[Suggestion]]


@dataclass(frozen=True)
class PlanStep:
    """One entry of the plan: the suggestions (positions in the priced list) applied together, and what is left."""

    suggestions: tuple[int, ...]
    rules: tuple[str, ...]
    predicted_step_ns: int
    note: str = ""  # e.g. "alone saves nothing; with the next ..."
    note_template: str = ""  # the note as a template with named values, for translation
    note_values: Mapping[str, Any] = field(default_factory=dict)
    predicted_host_step_ns: int | None = None  # what ProfilerStep would then say: it can fall while the pace does not
