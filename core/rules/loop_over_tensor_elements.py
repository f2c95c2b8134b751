"""A Python loop goes over the elements of a tensor.

What it finds
-------------
At least ten repeats of the same few operators in a row, starting with ``aten::select`` (or ``slice``, ``unbind``)
under one parent, twice as many that pick rows by ``aten::index``, or as many repeats behind an ``aten::unbind`` as that
has pieces (``for x in t``). With stacks, longer
rounds and rounds that differ (a branch, a nested loop), where all pieces are taken by one call of one function.

Why it costs time
-----------------
Each element costs several operators on the CPU, where one operator on the whole tensor would do.

Blind spots
-----------
PyTorch's former pattern matcher switched its own report off because of noise: views cost only CPU time, so it counts
only where the CPU holds up the GPU. Loops over the layers of a model and ``unbind`` by libraries look alike; with
stacks each layer is a call of its own. Whether the rounds need one another is not in the trace, apart from the cells of
recurrent networks, which have a form for whole sequences.

How to fix
----------
One operator on the whole tensor: ``torch.stack``, ``vmap``, ``gather``; ``nn.LSTM`` or ``nn.GRU`` in place
of a loop over their cells.

Sources
-------
PyTorch's former pattern matcher (ForLoopIndexing).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from core.kinds import SliceKind
from core.rule_tools.backward import nodes_of
from core.rule_tools.chains import sibling_rows_raw
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.report import evidence, group_by_frame, suggestion, total_ns
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion
from core.tables import I32, I64, Bool

RULE = Rule(
    id="loop-over-tensor-elements",
    title="A loop over a tensor's elements",
    needs=Needs.OPS,
    params=(
        Param("min_repeats", 10, "repeats", "shorter loops are often written on purpose"),
        Param("min_share", 0.02, "share of the time", "CPU time of the loop; below it there is nothing to gain"),
        Param("max_busy_pct", 85, "% of the time", "above it the GPU hides the CPU's loop"),
        Param("cell_factor", 0.5, "of the time", "nn.LSTM next to a loop over nn.LSTMCell, measured on CPUs"),
    ),
)
_LONGEST = 6  # operators per round; longer ones can be the layers of a model, unless one call of a function makes them
_LONGEST_OF_ONE_CALL = 24
_FIRST = ("aten::select", "aten::slice", "aten::unbind", "aten::narrow")
# Rows picked by a list of numbers, group after group, as of a graph's neighbours; a few tensors of a batch are indexed
# alike, so that there must be more rounds, which do something with what was picked.
_PICKS = ("aten::index", "aten::index_select")
_MORE_ROUNDS = 2
# Loops in C++: inside an operator, or a node of its backward pass; a node of a function in Python has no number.
_IN_CPP = re.compile(r"^(aten|autograd|c10d)::|Backward\d+$")
_CELLS = {
    "aten::lstm_cell": "LSTM",
    "aten::gru_cell": "GRU",
    "aten::rnn_tanh_cell": "RNN",
    "aten::rnn_relu_cell": "RNN",
}
_WHY = (
    "The same {period} operators ({names}) run {repeats:.0f} times in a row, {count} {count|time|times} "
    "over, and take {took_ms:time} of CPU time. On the whole tensor at once they would run a single time."
)
_CELL_WHY = (
    "A cell of a recurrent network is called for one element of the sequence after the other: {repeats:.0f} rounds of "
    "{period} operators ({names}), {count} {count|time|times} over, {took_ms:time} of CPU time. The module for whole "
    "sequences does the same in a few operators. The saving assumes that {left_pct:.0f} % of the time is left."
)


_GROUPS = Fix(
    "Reduce all groups at once: list which row belongs to which group.",
    "for i in range(n):\n    out.append(x[neighbours[i]].mean(0))\nout = torch.stack(out)",
    "# once: rows = torch.cat(neighbours); group = torch.repeat_interleave(torch.arange(n), sizes)\n"
    "out = x.new_zeros(n, x.shape[1]).index_add_(0, group, x[rows]) / sizes[:, None]",
    "https://pytorch.org/docs/stable/generated/torch.Tensor.index_add_.html",
    "Loops whose rounds depend on each other cannot be merged; sums in another order differ in the last digits.",
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each loop's place once."""
    facts = facts_of(ctx)
    busy = facts.busy_pct()
    if busy is not None and busy >= ctx.params["max_busy_pct"]:
        return []
    loops = _loops(ctx, facts, int(ctx.params["min_repeats"]))
    by_start = {ops[0]: (ops, period) for ops, period in loops}
    firsts = np.asarray(list(by_start), dtype=np.int32)
    # a data set that makes its items one by one does what it is asked for: that is the loader's matter
    loading = facts.matching(r"^enumerate\(DataLoader\)#", SliceKind.RANGE, SliceKind.CPU_OP)
    for start in firsts[facts.within_ranges(firsts, loading)].tolist():
        del by_start[start]
    out = []
    for starts in group_by_frame(ctx, facts, by_start).values():
        ops = [op for s in starts for op in by_start[s][0]]
        took = total_ns(facts, ops)
        if took < ctx.params["min_share"] * facts.window_ns:
            continue
        out.append(_report(ctx, facts, [by_start[s] for s in starts], took))
    return out


def _report(ctx: RuleContext, facts: Facts, loops: list[tuple[list[int], int]], took: int) -> Suggestion:
    """The suggestion for the loops of one place."""
    first, period = loops[0]
    ops = [op for loop, _ in loops for op in loop]
    keep = {op for loop, length in loops for op in loop[:length]}
    more = [op for op in ops if op not in keep]
    cell = next((_CELLS[n] for n in map(ctx.trace.name, first[:period]) if n in _CELLS), "")
    factor = ctx.params["cell_factor"]
    picks = ctx.trace.name(first[0]) in _PICKS
    effect = Effect(EffectKind.REMOVE_WORK, (*more, *nodes_of(facts, more)))
    if cell:
        effect = Effect(EffectKind.SCALE_HOST, (*ops, *nodes_of(facts, ops)), factor)
    made = suggestion(
        ctx,
        RULE.id,
        "A Python loop picks rows group by group: {repeats:.0f} rounds"
        if picks
        else "A Python loop takes a tensor piece by piece: {repeats:.0f} rounds",
        _CELL_WHY if cell else _WHY,
        _GROUPS if picks else _fix(cell),
        [
            evidence(facts, "Operators in the loop", len(ops), "", ops),
            evidence(facts, "Their CPU time", took / 1e6, "ms", ops),
        ],
        values={
            "repeats": len(ops) / max(period, 1) / len(loops),
            "count": len(loops),
            "period": period,
            "names": ", ".join(dict.fromkeys(ctx.trace.name(o) for o in first[:period])),
            "took_ms": took / 1e6,
            "left_pct": 100 * factor,
            "op_path": ctx.trace.name(first[0]),
        },
        anchors=[loop[0] for loop, _ in loops],
        effects=[effect],
        hint="loop",
    )
    return replace(made, source=ctx.source.of_loop(first[0], first[-1]) or made.source)


def _fix(cell: str) -> Fix:
    if cell:
        return Fix(
            "Give the whole sequence to the module that is made for it.",
            f"cell = nn.{cell}Cell(n, m)\nfor t in range(x.shape[1]):\n    h = cell(x[:, t], h)",
            f"rnn = nn.{cell}(n, m, batch_first=True)\nout, h = rnn(x)",
            f"https://pytorch.org/docs/stable/generated/torch.nn.{cell}.html",
            "Only where the next input does not come from the last output.",
        )
    return Fix(
        "Work on the whole tensor at once.",
        "for i in range(len(x)):\n    out.append(f(x[i]))\nout = torch.stack(out)",
        "out = f(x)                      # or torch.vmap(f)(x)",
        "https://pytorch.org/docs/stable/generated/torch.vmap.html",
        "Loops whose rounds depend on each other cannot be merged.",
    )


def _loops(ctx: RuleContext, facts: Facts, min_repeats: int) -> list[tuple[list[int], int]]:
    """Runs of a repeated short sequence of siblings that starts with indexing, and the sequence's length."""
    first = {facts.trace.strings.id_of(n) for n in _FIRST} - {-1}
    out: list[tuple[list[int], int]] = []
    starts = facts.name_table(first)
    picks = facts.name_table(facts.trace.strings.id_of(n) for n in _PICKS)
    has_stacks = bool(len(facts.of_kind(SliceKind.PYTHON)))
    pieces = _pieces(facts)
    for row in sibling_rows_raw(facts, min_repeats):
        names = facts.trace.slices.name_id[row]
        begins = starts[names]
        many, picked = int(begins.sum()) >= min_repeats, int(picks[names].sum()) >= _MORE_ROUNDS * min_repeats
        if not many and not pieces and not picked:
            continue
        parent = int(facts.trace.slices.parent_id[row[0]])
        if parent >= 0 and _IN_CPP.search(facts.trace.name(parent)):
            continue
        if parent < 0 or "Backward" not in facts.trace.name(
            parent
        ):  # its nodes take gradients apart, of their own accord
            out.extend(_over_pieces(row, names, pieces, min_repeats))
        if picked:
            groups = _loops_in(row, names, picks, _MORE_ROUNDS * min_repeats)
            out.extend((loop, period) for loop, period in groups if period > 1)
        if not many:
            continue
        found = list(_loops_in(row, names, starts, min_repeats))
        out.extend(found)
        rest = begins & ~np.isin(row, [op for loop, _ in found for op in loop]) if found else begins
        if has_stacks and int(rest.sum()) >= min_repeats:
            out.extend(_of_one_call(ctx, row, names, rest.nonzero()[0], min_repeats))
    return out


def _pieces(facts: Facts) -> dict[int, int]:
    """Into how many pieces each ``aten::unbind`` of a program's own took its tensor: ``for x in t`` begins with one."""
    slices = facts.trace.slices
    parents = slices.parent_id[facts.matching("^aten::select$", SliceKind.CPU_OP)]
    ids, counts = np.unique(parents[parents >= 0], return_counts=True)
    unbind = slices.name_id[ids] == facts.trace.strings.id_of("aten::unbind")
    return dict(zip(ids[unbind].tolist(), counts[unbind].tolist(), strict=True))


def _over_pieces(row: I32, names: I32, pieces: dict[int, int], min_repeats: int) -> Iterator[tuple[list[int], int]]:
    """Loops over what one operator took apart: as many rounds behind it as there are pieces."""
    if not pieces:
        return
    for at in np.isin(row, list(pieces)).nonzero()[0].tolist():
        count, after = pieces[int(row[at])], names[at + 1 :]
        for period in range(1, _LONGEST + 1) if count >= min_repeats else ():
            body = after[: count * period]
            if len(body) == count * period and np.array_equal(body[:-period], body[period:]):
                yield row[at + 1 : at + 1 + count * period].tolist(), period
                break


def _of_one_call(
    ctx: RuleContext, row: I32, names: I32, begins: I64, min_repeats: int
) -> Iterator[tuple[list[int], int]]:
    """Loops with long or uneven rounds: one call of a function takes piece after piece, never far apart."""
    for near in np.split(begins, (np.diff(begins) > _LONGEST_OF_ONE_CALL).nonzero()[0] + 1):
        if len(near) < min_repeats:
            continue
        frame = ctx.source.frames_around(row[near])
        if frame[0] < 0:
            continue
        for at in np.split(near, np.diff(frame).nonzero()[0] + 1):
            loop = _taken_apart(row, names, at) if len(at) >= min_repeats else None
            if loop is not None and loop[1] >= min_repeats:
                yield loop[0], max(round(len(loop[0]) / loop[1]), 1)


def _taken_apart(row: I32, names: I32, at: I64) -> tuple[list[int], int] | None:
    """Operators and number of rounds of a loop that takes its pieces at these places of a run of siblings."""
    rounds = at[np.concatenate([[True], np.diff(at) > 1])]  # x[i] and y[i], one after the other, begin one round
    body = np.diff(rounds)
    if not len(body) or len(np.unique(names[rounds[0] : rounds[-1] + 1])) > _LONGEST_OF_ONE_CALL:
        return None  # one piece after another of different things is no loop over a tensor
    usual = int(np.bincount(body).argmax())
    return row[rounds[0] : min(rounds[-1] + usual, len(row))].tolist(), len(rounds)


def _loops_in(row: I32, names: I32, starts: Bool, min_repeats: int) -> Iterator[tuple[list[int], int]]:
    """The loops in one run of siblings."""
    begins = starts[names[: len(row) - min_repeats]].nonzero()[0]
    runs: dict[int, I64] = {}
    fits = np.zeros(len(begins), dtype=bool)
    for period in range(1, min(_LONGEST, len(row) - 1) + 1):
        same = names[:-period] == names[period:]
        if np.count_nonzero(same) < (min_repeats - 1) * period:
            continue  # not even all of them together make one loop
        runs[period] = run = _run_lengths(same, begins)
        fits |= run // period + 1 >= min_repeats
    done = -1
    for place, at in zip(fits.nonzero()[0].tolist(), begins[fits].tolist(), strict=True):
        if at < done:
            continue
        for period, run in runs.items():
            rounds = int(run[place]) // period + 1
            if rounds < min_repeats or (period > 1 and len(set(names[at : at + period].tolist())) == 1):
                continue
            done = at + rounds * period
            yield row[at:done].tolist(), period
            break


def _run_lengths(same: Bool, begins: I64) -> I64:
    """int64[len(begins)]: how many places in a row, from each on, are followed by the same op one period later."""
    stops = np.append((~same).nonzero()[0], len(same))
    lengths: I64 = stops[np.minimum(stops.searchsorted(begins), len(stops) - 1)] - begins
    return np.maximum(lengths, 0)
