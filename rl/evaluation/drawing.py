"""Intervals of figures over help states: each task's help states are drawn again, tasks are not.

So an interval says how much chance is in *which situations* of these tasks were met, and nothing of
other tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from mle_ideator.benchmarks.measures.resampling import CONFIDENCE, REPLICATES, SEED, Array, Sample


@dataclass(frozen=True)
class StateSample(Sample):
    """Help states by their tasks, equal tasks side by side; a figure is, as ever, the mean over
    tasks of the mean over what each has.

    Of a task's n help states n − 1 are drawn, and weigh n / (n − 1) (Rao and Wu, 1988): drawing all
    n makes intervals of small tasks too narrow. A task with a single one can tell nothing of
    chance, so all such tasks are drawn from together.
    """

    @cached_property
    def _counts(self) -> Array:
        """What each replicate weighs each help state: (replicates, states)."""
        rng = np.random.default_rng((SEED, 2))
        counts = np.empty((REPLICATES, len(self.tasks)))
        for places in self._strata:
            n = len(places)
            if n == 1:
                counts[:, places] = 1
                continue
            drawn = rng.multinomial(n - 1, np.full(n, 1 / n), size=REPLICATES)
            counts[:, places] = drawn * (n / (n - 1))
        return counts

    @cached_property
    def _weights(self) -> Array:
        """What each replicate weighs each help state in a mean: (replicates, states). They sum to
        1, also where tasks of different shares were drawn from together: a mean stays in range."""
        weights = self._counts * self._shares
        each: Array = weights / weights.sum(axis=1, keepdims=True)
        return each

    def means(self, values: Array) -> tuple[Array, Array | None, Array | None]:
        middle = self._shares @ values
        if len(values) < 2:
            return middle, None, None
        tail = (1 - CONFIDENCE) / 2
        low, high = np.quantile(self._weights @ values, (tail, 1 - tail), axis=0)
        return middle, low, high

    @cached_property
    def _strata(self) -> list[Sequence[int]]:
        """Places of the help states that are drawn from together: two at least, if there are."""
        ends = np.cumsum(self.sizes)
        spans = [range(end - size, end) for end, size in zip(ends, self.sizes, strict=True)]
        alone = [span[0] for span in spans if len(span) == 1]
        strata: list[Sequence[int]] = [list(span) for span in spans if len(span) > 1]
        if len(alone) == 1 and strata:
            largest = max(strata, key=len)
            strata[strata.index(largest)] = [*largest, *alone]
        elif alone:
            strata.append(alone)
        return strata


@lru_cache(maxsize=16)
def states_on(tasks: tuple[str, ...]) -> StateSample:
    """The help states on these tasks; their draws are kept for the next figure."""
    return StateSample(tasks)
