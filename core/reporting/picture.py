"""Drawings (SVG): one typical step, from the tables alone, and the falling bars of the plan."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from core.device_words import device_word
from core.figures.model import Figures
from core.kinds import SliceKind, TrackKind
from core.reporting.phrases import printable
from core.reporting.units import duration, percent
from core.tables import FLAG_COMMUNICATION
from core.trace import Trace
from core.words import significant

WIDTH, LEFT, ROW, GAP = 1132, 116, 17, 10  # px
LANES = 6  # of one thread: deeper calls are not drawn
MOST_TRACKS = 8
MOST_BOXES = 6000
LOOKS = {
    SliceKind.CPU_OP: "op",
    SliceKind.RANGE: "range",
    SliceKind.STEP: "step",
    SliceKind.RUNTIME: "runtime",
    SliceKind.DRIVER: "runtime",
    SliceKind.KERNEL: "kernel",
    SliceKind.MEMCPY: "memcpy",
    SliceKind.MEMSET: "memset",
}
DRAWN = {TrackKind.CPU_RANGES: 2, TrackKind.CPU_OPS: LANES, TrackKind.DEVICE_STREAM: 2}


def escape(text: str) -> str:
    """Escape a text for the drawing, control characters made visible (a control character is no valid XML)."""
    return html.escape(printable(text))


@dataclass(frozen=True)
class Window:
    """A stretch of time and what it shows."""

    start_ns: int
    end_ns: int
    name: str

    def x(self, time_ns: float) -> float:
        """Where a time lies, px."""
        share = (time_ns - self.start_ns) / max(self.end_ns - self.start_ns, 1)
        return LEFT + share * (WIDTH - LEFT)


def typical_step(trace: Trace, figures: Figures) -> Window:
    """Return the counted step whose duration is nearest to the median, with its device work; the trace without."""
    steps, rows = figures.steps, figures.step_figures
    if not len(steps):
        return Window(*trace.span_ns, "the whole trace")
    chosen = np.flatnonzero(rows.counted) if rows.counted.any() else np.arange(len(steps))
    length = (steps.end_ns - steps.start_ns)[chosen]
    step = int(chosen[int(np.argmin(np.abs(length - np.median(length))))])
    start, end = int(steps.start_ns[step]), int(steps.end_ns[step])
    device_end = int(rows.device_end_ns[step])
    if end < device_end < end + 2 * (end - start):  # device work that trails a little belongs to the picture
        end = device_end
    return Window(start, end, trace.strings[int(steps.name_id[step])])


def draw(trace: Trace, figures: Figures) -> str:
    """Return the SVG element."""
    window = typical_step(trace, figures)
    tracks = list(_tracks(trace, window))
    top, tops = 26, {}
    body: list[str] = []
    for track, lanes, label in tracks:
        tops[track] = top
        body.append(f'<text class="label" x="0" y="{top + 12}">{escape(label)}</text>')
        body += _boxes(trace, window, track, lanes, top)
        top += lanes * ROW + GAP
        body.append(f'<path class="line" d="M0 {top - GAP / 2}H{WIDTH}"/>')
    body += _waits(trace, figures, window, tops)
    name = escape(f"Timeline of {window.name}, {duration(window.end_ns - window.start_ns)}")
    return (
        f'<svg viewBox="0 0 {WIDTH} {top}" role="img" aria-label="{name}">'
        '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<path d="M0 0V6" stroke="var(--wait)" stroke-width="3" opacity=".75"/></pattern></defs>'
        f"{''.join(_axis(window, top))}{''.join(body)}</svg>"
    )


def _axis(window: Window, bottom: int) -> Iterator[str]:
    span = max(window.end_ns - window.start_ns, 1)
    step = 10 ** np.floor(np.log10(span / 6))
    step = next(step * m for m in (1, 2, 5, 10) if span / (step * m) <= 9)
    unit, divisor = ("ms", 1e6) if span >= 2e6 else ("µs", 1e3)
    for i in range(int(span / step) + 1):
        x = window.x(window.start_ns + i * step)
        yield f'<path d="M{x:.1f} 18V{bottom}" stroke="var(--grid)"/>'
        anchor = "start" if i == 0 else "middle" if x < WIDTH - 20 else "end"
        label = significant(i * step / divisor)
        yield f'<text class="tick" x="{x:.1f}" y="12" text-anchor="{anchor}">{label} {unit}</text>'


def _tracks(trace: Trace, window: Window) -> Iterator[tuple[int, int, str]]:
    """Tracks with something in the window: row of the track table, lanes to draw, label."""
    table, shown = trace.tracks, 0
    for track in range(len(table)):
        kind = TrackKind(int(table.kind[track]))
        if kind not in DRAWN or shown >= MOST_TRACKS:
            continue
        inside = _inside(trace, window, track)
        if not len(inside):
            continue
        if kind is TrackKind.DEVICE_STREAM:
            device = int(table.device[track])
            label = f"{device_word(trace, device)} {device} stream {int(table.stream[track])}"
        else:
            thread = int(table.thread_id[track])
            if thread >= 0 and len(inside) < 3 and not trace.threads.main[thread]:
                continue
            what = "ranges" if kind is TrackKind.CPU_RANGES else "CPU"
            label = f"{what} {trace.threads.tid[thread]}" if thread >= 0 else what
        shown += 1
        yield track, min(DRAWN[kind], 1 + int(trace.slices.depth[inside].max())), label[:19]


def _inside(trace: Trace, window: Window, track: int) -> np.ndarray:
    first, end = int(trace.tracks.first_id[track]), int(trace.tracks.end_id[track])
    ids = np.arange(first, end)
    slices = trace.slices
    keep = (slices.start_ns[first:end] < window.end_ns) & (trace.end_ns[first:end] > window.start_ns)
    return np.asarray(ids[keep])


def _boxes(trace: Trace, window: Window, track: int, lanes: int, top: int) -> Iterator[str]:
    slices, drawn = trace.slices, 0
    ids = _inside(trace, window, track)
    for lane in range(lanes):
        last_x, y = -1.0, top + lane * ROW
        for i in ids[slices.depth[ids] == lane]:
            left = max(window.x(int(slices.start_ns[i])), float(LEFT))
            right = min(window.x(int(trace.end_ns[i])), float(WIDTH))
            if right - left < 0.6:  # thinner than a pixel: one mark per pixel is enough
                if left < last_x + 1:
                    continue
                right = left + 0.6
            last_x, drawn = right, drawn + 1
            if drawn > MOST_BOXES:
                return
            yield _box(trace, int(i), left, right, y)


def _box(trace: Trace, slice_id: int, left: float, right: float, y: float) -> str:
    slices = trace.slices
    look = LOOKS.get(SliceKind(int(slices.kind[slice_id])), "step")
    if slices.flags[slice_id] & FLAG_COMMUNICATION and look == "kernel":
        look = "comm"
    name, width = trace.name(slice_id), right - left
    text = f'<rect class="k-{look}" x="{left:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 2}"'
    if width < 3:
        return f"{text}/>"
    text += f"><title>{escape(name[:200])} {duration(int(slices.dur_ns[slice_id]))}</title></rect>"
    letters = int((width - 6) / 6.2)
    if letters >= 4:
        short = name.removeprefix("aten::")
        short = short if len(short) <= letters else f"{short[: letters - 1]}…"
        text += f'<text x="{left + 3:.1f}" y="{y + 11.5}" pointer-events="none">{escape(short)}</text>'
    return text


def _waits(trace: Trace, figures: Figures, window: Window, tops: dict[int, int]) -> Iterator[str]:
    """Waits as red hatching on the call, and a line to the work that ended it."""
    syncs, slices = figures.syncs, trace.slices
    for i in range(len(syncs)):
        start, wait = int(syncs.wait_start_ns[i]), int(syncs.wait_ns[i])
        call = int(syncs.slice_id[i])
        track = int(slices.track_id[call])
        if wait <= 0 or start + wait <= window.start_ns or start >= window.end_ns or track not in tops:
            continue
        left, right = max(window.x(start), float(LEFT)), min(window.x(start + wait), float(WIDTH))
        y = tops[track] + min(int(slices.depth[call]), LANES - 1) * ROW
        title = f"{trace.name(call)} waits {duration(wait)}"
        yield (
            f'<rect class="waitbox" x="{left:.1f}" y="{y}" width="{max(right - left, 1):.1f}" height="{ROW - 2}">'
            f"<title>{escape(title[:200])}</title></rect>"
        )
        waited = int(syncs.waited_id[i])
        below = tops.get(int(slices.track_id[waited])) if waited >= 0 else None
        if below is not None and right - left > 2 and below > y:
            yield f'<path class="waitline" d="M{right:.1f} {y + ROW - 2}V{below}"/>'


def falling_bars(values: list[float], as_shares: bool = False) -> str:
    """Predicted step time after each fix, as bars; with times, or as shares of the first."""
    width, gap, height = 64, 12, 90
    bars = []
    for i, value in enumerate(values):
        tall = max(2.0, height * value / max(values))
        x, top = i * (width + gap), 18 + height - tall
        colour = "var(--wait)" if i == 0 else "var(--accent)"
        label = "now" if i == 0 else f"after {i}"
        words = percent(100 * value / values[0]) if as_shares else duration(value)
        bars.append(
            f'<rect x="{x}" y="{top:.1f}" width="{width}" height="{tall:.1f}" rx="3" fill="{colour}"/>'
            f'<text x="{x + width / 2}" y="{top - 5:.1f}" text-anchor="middle">{escape(words)}</text>'
            f'<text class="tick" x="{x + width / 2}" y="{height + 32}" text-anchor="middle">{label}</text>'
        )
    total = len(values) * (width + gap)
    return (
        f'<div class="picture"><svg viewBox="0 0 {total} {height + 38}" style="max-width:{total}px" role="img" '
        f'aria-label="Predicted step time">{"".join(bars)}</svg></div><p></p>'
    )
