# ruff: noqa: SIM905  (word lists read better as text)
"""Known chains of small operators that a built-in does at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from core.kinds import SliceKind
from core.rule_tools.facts import Facts
from core.tables import I32, I64

# ops that only look at a tensor in another way, or that autograd puts in between: they do not break a chain
_VIEWS = frozenset(
    (
        "aten::unsqueeze aten::squeeze aten::view aten::reshape aten::expand aten::expand_as aten::transpose aten::t "
        "aten::permute aten::slice aten::select aten::contiguous aten::detach aten::detach_ detach detach_ aten::to "
        "aten::empty aten::as_strided aten::alias aten::result_type aten::lift_fresh aten::arange aten::_to_copy"
    ).split()
)


@dataclass(frozen=True)
class Chain:
    """One composite operation: the ops it is written with, in order (views between them are allowed)."""

    what: str
    ops: tuple[frozenset[str], ...]
    keeps: int  # how many of its ops the built-in still needs
    summary: str
    before: str
    after: str
    url: str
    hint: str = ""
    risk: str = "Compare the results once; they may differ in the last digits."


def _chain(*names: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(f"aten::{n}" for n in name.split("|")) for name in names)


_UNBIASED = "std() and var() divide by n - 1 and layer_norm by n: results differ a little, by less the wider the layer."
_DOCS = "https://pytorch.org/docs/stable/generated/torch.nn.functional."

CHAINS = (  # longer ones first: an operator belongs to the first chain that holds it
    Chain(
        "log-softmax",
        _chain("exp", "sum", "log", "sub"),
        1,
        "Use the built-in log_softmax.",
        "x - x.exp().sum(-1).log().unsqueeze(-1)",
        "F.log_softmax(x, dim=-1)",
        _DOCS + "log_softmax.html",
        "call:exp,log,sum",
    ),
    Chain(
        "a negative log-likelihood loss",
        _chain("index|gather", "neg", "index|index_select", "mul", "index|index_select", "sum", "div", "sum"),
        2,
        "Use the built-in nll_loss.",
        "nll = -pred[rows, target]\nnll = nll * weight[target]\nnll = nll / weight[target].sum()\nloss = nll.sum()",
        "loss = F.nll_loss(pred, target, weight=weight)",
        _DOCS + "nll_loss.html",
        "gather",
    ),
    Chain(
        "a negative log-likelihood loss",
        _chain("index|gather", "index|index_select", "mul", "sum", "neg", "index|index_select", "sum", "div"),
        2,
        "Use the built-in nll_loss.",
        "picked = pred[rows, target]\nloss = -(weight[target] * picked).sum() / weight[target].sum()",
        "loss = F.nll_loss(pred, target, weight=weight)",
        _DOCS + "nll_loss.html",
        "gather",
    ),
    Chain(
        "a negative log-likelihood loss",
        _chain("index|gather", "neg", "mean"),
        1,
        "Use the built-in nll_loss.",
        "loss = -pred[rows, target].mean()",
        "loss = F.nll_loss(pred, target)",
        _DOCS + "nll_loss.html",
        "gather",
    ),
    Chain(
        "log-softmax",
        _chain("exp", "sum", "div", "log"),
        1,
        "Use the built-in log_softmax.",
        "e = x.exp()\nlogp = (e / e.sum(-1, keepdim=True)).log()",
        "logp = F.log_softmax(x, dim=-1)",
        _DOCS + "log_softmax.html",
        "call:exp,log,sum",
        "Where the exponentials overflow, the built-in still gives numbers: results can differ there.",
    ),
    Chain(
        "softmax",
        _chain("exp", "sum", "div"),
        1,
        "Use the built-in softmax.",
        "e = x.exp()\np = e / e.sum(-1, keepdim=True)",
        "p = F.softmax(x, dim=-1)",
        _DOCS + "softmax.html",
        "call:exp,sum",
    ),
    Chain(
        "GELU",
        _chain("mul", "div|mul", "erf", "add", "mul"),
        1,
        "Use the built-in gelu.",
        "0.5 * x * (1 + torch.erf(x / math.sqrt(2)))",
        "F.gelu(x)",
        _DOCS + "gelu.html",
        "call:erf",
    ),
    Chain(
        "GELU",
        _chain("div|mul", "erf", "add", "mul"),
        1,
        "Use the built-in gelu.",
        "0.5 * x * (1 + torch.erf(x / math.sqrt(2)))",
        "F.gelu(x)",
        _DOCS + "gelu.html",
        "call:erf",
    ),
    Chain(
        "GELU",
        _chain("pow", "mul", "add", "mul", "tanh", "add", "mul"),
        1,
        "Use the built-in gelu.",
        "0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))",
        'F.gelu(x, approximate="tanh")',
        _DOCS + "gelu.html",
        "call:tanh",
    ),
    Chain(
        "layer norm",
        _chain("mean", "sub", "pow", "mean", "add", "sqrt|rsqrt", "div|mul"),
        1,
        "Use the built-in layer_norm.",
        "(x - x.mean(-1, keepdim=True)) / torch.sqrt(((x - mean) ** 2).mean(-1, keepdim=True) + eps)",
        "F.layer_norm(x, x.shape[-1:], weight, bias, eps)",
        _DOCS + "layer_norm.html",
        "call:mean,sqrt",
    ),
    Chain(
        "layer norm",
        _chain("mean", "var", "sub", "add", "sqrt|rsqrt", "div|mul"),
        1,
        "Use the built-in layer_norm.",
        "(x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + eps)",
        "F.layer_norm(x, x.shape[-1:], weight, bias, eps)",
        _DOCS + "layer_norm.html",
        "call:mean,var",
        _UNBIASED,
    ),
    Chain(
        "layer norm",
        _chain("mean", "std", "sub", "mul", "add", "div", "add"),
        1,
        "Use the built-in layer_norm.",
        "a * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps) + b",
        "F.layer_norm(x, x.shape[-1:], weight, bias, eps)",
        _DOCS + "layer_norm.html",
        "call:mean,std",
        _UNBIASED,
    ),
    Chain(
        "layer norm",
        _chain("mean", "std", "sub", "add", "div"),
        1,
        "Use the built-in layer_norm.",
        "(x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps)",
        "F.layer_norm(x, x.shape[-1:], eps=eps)",
        _DOCS + "layer_norm.html",
        "call:mean,std",
        _UNBIASED,
    ),
    Chain(
        "RMS norm",
        _chain("pow", "mean", "add", "rsqrt", "mul"),
        1,
        "Use the built-in rms_norm.",
        "x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight",
        "F.rms_norm(x, x.shape[-1:], weight, eps)",
        _DOCS + "rms_norm.html",
        "call:rsqrt",
    ),
)


def find_chains(facts: Facts, chain: Chain) -> list[list[int]]:
    """Slices of each occurrence of a chain among sibling ops in counted steps; views between are skipped."""
    key = f"chain {id(chain)}"  # comparing chains takes longer than looking for one; they live as long as the program
    held = facts.memo.get(key)
    if held is None:
        held = facts.memo[key] = list(_find(facts, chain))
    return held  # type: ignore[no-any-return]


def _find(facts: Facts, chain: Chain) -> Iterator[list[int]]:
    wanted = [[i for n in part if (i := facts.trace.strings.id_of(n)) >= 0] for part in chain.ops]
    if not all(wanted):
        return
    ops, row = joined_rows(facts)
    names = facts.trace.slices.name_id[ops]
    last = len(ops) - len(wanted)
    starts = facts.name_table(wanted[0])[names].nonzero()[0]
    starts = starts[starts <= last]
    for at, part in enumerate(wanted[1:], 1):
        if not len(starts):
            return
        starts = starts[facts.name_table(part)[names[starts + at]]]
    starts = starts[row[starts] == row[starts + len(wanted) - 1]]
    done = -1
    for first in starts.tolist():
        if first > done:
            done = first + len(wanted) - 1
            yield ops[first : done + 1].tolist()


def joined_rows(facts: Facts) -> tuple[I32, I64]:
    """int32[n] and int64[n]: operators of all `sibling_rows`, row after row, and the number of the row of each."""
    held = facts.memo.get("sibling rows joined")
    if held is None:
        rows = sibling_rows(facts)
        ops = np.concatenate(rows) if rows else np.empty(0, dtype=np.int32)
        held = facts.memo["sibling rows joined"] = ops, np.arange(len(rows)).repeat([len(r) for r in rows])
    return held  # type: ignore[no-any-return]


def sibling_rows(facts: Facts) -> list[np.ndarray]:
    """Runs of at least three sibling ops in time order, views left out; ops of one parent on one track."""
    views = [facts.trace.strings.id_of(v) for v in _VIEWS]
    return _rows(facts, "sibling rows", views, 3)


def sibling_rows_raw(facts: Facts, at_least: int) -> list[np.ndarray]:
    """As `sibling_rows`, with the views, and only runs of ``at_least`` ops."""
    return _rows(facts, f"sibling rows raw {at_least}", [], at_least)


def _rows(facts: Facts, key: str, leave_out: list[int], at_least: int) -> list[np.ndarray]:
    held = facts.memo.get(key)
    if held is not None:
        return held  # type: ignore[no-any-return]
    sl = facts.trace.slices
    ops = facts.in_steps(facts.of_kind(SliceKind.CPU_OP))
    if leave_out:
        ops = ops[~facts.name_table(leave_out)[sl.name_id[ops]]]
    out: list[np.ndarray] = []
    # by (track, parent), each in time order because ids of a track ascend with time
    tracks = len(facts.trace.tracks)
    parent = sl.parent_id[ops]
    group = np.where(parent >= 0, parent + tracks, tracks - 1 - sl.track_id[ops]).astype(np.int32)
    many = (np.bincount(group) >= at_least)[group]  # most parents have fewer children: they are not sorted
    ops, group = ops[many], group[many]
    if len(ops):
        order = group.argsort(kind="stable")
        ordered = ops[order]
        group = group[order]
        edges = [0, *((group[1:] != group[:-1]).nonzero()[0] + 1).tolist(), len(ops)]
        out = [ordered[first:end] for first, end in pairwise(edges)]
    facts.memo[key] = out
    return out
