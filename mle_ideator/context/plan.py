"""Which steps of a trajectory are shown whole, which in a line, which only counted.

The decision is a fold over the steps from the first on: it depends on the trajectory alone, and
what was decided for n steps holds for n + 1 unless they no longer fit. Then much is condensed at
once, so that it seldom happens and what is sent stays the same from step to step.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

HEADING = 24
"""Tokens of a block besides its lines."""
_SUMMARY = 160


class Plan(NamedTuple):
    """The first steps are summarised, the next ones condensed to lines, the rest whole."""

    summarised: int = 0
    blocks: tuple[int, ...] = ()
    """Where each block of lines ends. Blocks are added behind; those that are there stay."""

    @property
    def condensed(self) -> int:
        """How many steps are not whole."""
        return self.blocks[-1] if self.blocks else self.summarised


class Sizes:
    """What each step takes whole and as a line, summed up, and the limit of all together."""

    def __init__(self, whole: Sequence[int], lines: Sequence[int], limit: int) -> None:
        self.limit = limit
        self._whole = [0, *accumulate(whole)]
        self._lines = [0, *accumulate(lines)]

    def used(self, plan: Plan, steps: int) -> int:
        """Tokens of the first steps under a plan."""
        summary = summary_room(self.limit) + HEADING if plan.summarised else 0
        return summary + self.lined(plan) + self.whole(plan, steps)

    def whole(self, plan: Plan, steps: int) -> int:
        """Tokens of those that are whole."""
        return self._whole[steps] - self._whole[plan.condensed]

    def lined(self, plan: Plan) -> int:
        """Tokens of a plan's lines."""
        lines = self._lines[plan.condensed] - self._lines[plan.summarised]
        return lines + HEADING * len(plan.blocks)


def planned(sizes: Sizes, steps: int, summarised: int = 0) -> Plan:
    """A plan within the limit, of which no step may take more than half.

    The first `summarised` steps are no more than counted, and their sizes never asked for.
    """
    plan = Plan(summarised)
    for end in range(summarised + 1, steps + 1):
        if sizes.used(plan, end) > sizes.limit:
            plan = compacted(plan, sizes, end, sizes.limit * 2 // 5)
    return plan


def compacted(plan: Plan, sizes: Sizes, steps: int, room: int) -> Plan:
    """A plan that leaves so much room to whole steps; the last one is whole in any case.

    Lines that take over a sixth of the limit become part of the summary, down to half of that.
    """
    end, shorter = plan.condensed, plan
    while end < steps - 1 and sizes.whole(shorter, steps) > room:
        end += 1
        shorter = Plan(plan.summarised, (*plan.blocks, end))
    if sizes.lined(shorter) > sizes.limit // 6:
        while sizes.lined(shorter) > sizes.limit // 12:
            start = shorter.summarised + 1
            shorter = Plan(start, (end,) if start < end else ())
    return shorter


def summary_room(limit: int) -> int:
    """Tokens that the summary, or a line, may have."""
    return min(limit // 8, _SUMMARY)
