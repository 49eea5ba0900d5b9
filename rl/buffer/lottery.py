"""One draw: which states are candidates, and how likely each is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mle_ideator.rl.buffer import curriculum as pure
from mle_ideator.rl.buffer.config import CurriculumConfig
from mle_ideator.rl.buffer.curriculum import Counts, Floats


class Lottery(NamedTuple):
    """First a task, by its number of candidates; then one of them, all alike."""

    counts: Counts
    """Drawable states by task and level."""
    members: Floats
    """How far each level belongs to the candidates, 0 to 1."""
    candidates: Floats
    """By task; a state that belongs in part counts in part."""
    weights: Floats
    """How much each task is drawn."""

    @property
    def open(self) -> bool:
        return bool(self.weights.any())

    def cells(self, random: np.random.Generator, count: int) -> list[tuple[int, int, float]]:
        """So many picks: task, level, and a number from 0 to below 1 for the place in the cell.

        Rounding may hit a cell that is empty, hardly ever.
        """
        u, v, w = random.random((3, count))
        tasks = pure.weighted_index(self.weights.cumsum(), u)
        sums = (self.counts[tasks] * self.members).cumsum(axis=1)
        levels = (sums <= v[:, None] * sums[:, -1:]).sum(axis=1)
        return list(zip(tasks.tolist(), levels.tolist(), w.tolist(), strict=True))


def lottery(counts: Counts, asked: int, draws: int, config: CurriculumConfig) -> Lottery:
    """The lottery over drawable states, given by task and level; `draws` is the schedule's clock.

    Candidates are the top fraction of them by potential, but as many as are asked for. Costs a look
    at every task and level, none at the states.
    """
    drawable = int(counts.sum())
    quota = max(pure.top_fraction(draws, config) * drawable, min(asked, drawable))
    members = pure.membership(counts.sum(axis=0), quota)
    candidates = counts @ members
    return Lottery(counts, members, candidates, pure.task_weights(candidates, config.balance))
