"""What a pass came by, so that the next one need not be run to its end once it goes the same way.

Where all clocks of a pass are ahead of those of the pass before by the same time, and so is all that is still going to
be read, whatever follows is ahead by that time, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from core.replay.program import Program

_TRIES = 4  # at so many places at most it is looked closely


@dataclass(eq=False)
class Trail:
    """One pass: the clocks of lanes and streams where each stretch of segments begins, and what it ended with, ns.

    ``within_ns``: how far times may be apart that are taken to be the same.
    """

    within_ns: float
    lanes_at: list[list[float]] = field(default_factory=list)  # less host time: delays
    streams_at: list[list[float]] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)  # per segment
    lanes: list[float] = field(default_factory=list)
    streams: list[float] = field(default_factory=list)
    slots: list[float] = field(default_factory=list)
    tries: int = 0

    def pass_by(self, lanes: list[float], streams: list[float]) -> None:
        """Note the clocks at the beginning of a stretch."""
        self.lanes_at.append(lanes.copy())
        self.streams_at.append(streams.copy())

    def end(self, delays: list[float], lanes: list[float], streams: list[float], slots: list[float]) -> None:
        """Note what the pass ended with."""
        self.delays, self.lanes, self.streams, self.slots = delays, lanes.copy(), streams.copy(), slots.copy()

    @property
    def ended(self) -> bool:
        """Whether the pass was run to its end."""
        return bool(self.delays)

    def ahead(
        self, program: Program, stretch: int, lanes: list[float], streams: list[float], slots: list[float]
    ) -> float | None:
        """By how much the pass after this one is ahead from the beginning of a stretch on, ns; None where it differs.

        Parameters
        ----------
        lanes, streams, slots
            As the later pass has them there.
        """
        segment = program.stretches[stretch]
        if self.tries >= _TRIES or segment <= program.reads_back:
            return None
        lag = lanes[0] - self.lanes_at[stretch][0]
        low, high = lag - self.within_ns, lag + self.within_ns
        if any(not low <= b - a <= high for a, b in zip(self.lanes_at[stretch], lanes, strict=True)):
            return None
        if any(not low <= b - a <= high for a, b in zip(self.streams_at[stretch], streams, strict=True)):
            return None
        self.tries += 1
        before = self.slots
        moved = all(low <= slots[slot] - before[slot] <= high for slot in program.read_later(segment))
        return lag if moved else None

    def follow(
        self, program: Program, stretch: int, lag: float, slots: list[float]
    ) -> tuple[list[float], list[float], list[float]]:
        """End a pass that is ahead by a lag from a stretch on: set its slots.

        Returns
        -------
        tuple
            The delays that are left, of each segment, and the clocks of lanes and streams at the end, ns.
        """
        segment = program.stretches[stretch]
        for slot in program.set_later(segment):
            slots[slot] = self.slots[slot] + lag
        left = [delay + lag for delay in self.delays[segment:]]
        return left, [clock + lag for clock in self.lanes], [clock + lag for clock in self.streams]
