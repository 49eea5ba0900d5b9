"""Figures with bootstrap intervals: tasks are resampled, and seeds within tasks.

The draws depend on nothing but how many runs each task has: the order of runs does not matter, and
no contender's interval depends on another's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mle_ideator.benchmarks.measures.figures import Figure

Array = NDArray[np.float64]

REPLICATES = 2000
CONFIDENCE = 0.95
SEED = 20260101


@dataclass(frozen=True)
class Sample:
    """Runs by their tasks, equal tasks side by side; values of runs come in the same order."""

    tasks: tuple[str, ...]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many runs each task has."""
        return tuple(len(list(same)) for _, same in groupby(self.tasks))

    @cached_property
    def _task_counts(self) -> Array:
        """How often each replicate has each task: (replicates, tasks)."""
        rng = np.random.default_rng((SEED, 0))
        tasks = len(self.sizes)
        return rng.multinomial(tasks, np.full(tasks, 1 / tasks), size=REPLICATES).astype(float)

    @cached_property
    def _counts(self) -> Array:
        """How often each replicate has each run: (replicates, runs)."""
        rng = np.random.default_rng((SEED, 1))
        columns = [
            rng.multinomial(self._task_counts[:, task].astype(int) * size, np.full(size, 1 / size))
            for task, size in enumerate(self.sizes)
        ]
        return np.hstack(columns).astype(float)

    @cached_property
    def _shares(self) -> Array:
        """What each run weighs in a mean over tasks of means over seeds: (runs,)."""
        sizes = np.repeat(np.array(self.sizes, dtype=float), self.sizes)
        return 1 / (sizes * len(self.sizes))

    def means(self, values: Array) -> tuple[Array, Array | None, Array | None]:
        """Means over tasks of means over seeds, of each column of (runs, columns), with bounds."""
        middle = self._shares @ values
        if len(values) < 2:
            return middle, None, None
        low, high = _bounds((self._counts * self._shares) @ values)
        return middle, low, high

    def mean(self, name: str, values: Sequence[float]) -> Figure:
        """The mean over tasks of the mean over their runs."""
        if not len(values):
            return Figure(name=name, value=None, n=0)
        middle, low, high = self.means(np.array(values, dtype=float)[:, None])
        return _figure(name, middle[0], _first(low), _first(high), len(values))

    def best(self, name: str, values: Sequence[float]) -> Figure:
        """The mean over tasks of the best of their runs.

        For its interval tasks alone are resampled: the best of runs that are drawn with repetition
        is worse than the best of all, always.
        """
        if not len(values):
            return Figure(name=name, value=None, n=0)
        ends = np.cumsum(self.sizes)[:-1]
        best = np.array([part.max() for part in np.split(np.array(values, dtype=float), ends)])
        if len(best) < 2:
            return Figure(name=name, value=float(best.mean()), n=len(values))
        low, high = _bounds(self._task_counts @ best / len(best))
        return _figure(name, best.mean(), low, high, len(values))

    def ratio(
        self, name: str, parts: Sequence[float], wholes: Sequence[float], scale: float = 1.0
    ) -> Figure:
        """Sum of `parts` over sum of `wholes`, over all runs together; n is the latter."""
        whole = np.array(wholes, dtype=float)
        if not whole.sum():
            return Figure(name=name, value=None, n=0)
        value, replicates = self._ratios(np.array(parts, dtype=float), whole)
        low, high = _bounds(scale * replicates) if np.count_nonzero(whole) > 1 else (None, None)
        return _figure(name, scale * value, low, high, round(whole.sum()))

    def difference_of_ratios(
        self,
        name: str,
        first: tuple[Sequence[float], Sequence[float]],
        second: tuple[Sequence[float], Sequence[float]],
        scale: float = 1.0,
    ) -> Figure:
        """The first ratio − the second, of parts and wholes of the same runs, drawn together."""
        (part, whole), (other_part, other_whole) = (
            [np.array(values, dtype=float) for values in pair] for pair in (first, second)
        )
        if not whole.sum() or not other_whole.sum():
            return Figure(name=name, value=None, n=0)
        value, replicates = self._ratios(part, whole)
        other_value, others = self._ratios(other_part, other_whole)
        differences = scale * (replicates - others)
        low, high = _bounds(differences) if len(whole) > 1 else (None, None)
        n = round(whole.sum() + other_whole.sum())
        return _figure(name, scale * (value - other_value), low, high, n)

    def _ratios(self, part: Array, whole: Array) -> tuple[float, Array]:
        """The ratio, and that of each replicate: NaN where one drew nothing to divide by."""
        drawn = self._counts @ whole
        replicates = np.divide(
            self._counts @ part, drawn, out=np.full(len(drawn), np.nan), where=drawn > 0
        )
        return part.sum() / whole.sum(), replicates

    def plain_mean(self, name: str, values: Sequence[float | None]) -> Figure:
        """The mean over the runs of which a value is known."""
        known = [value is not None for value in values]
        return self.ratio(name, [value or 0.0 for value in values], known)


@lru_cache(maxsize=4)
def sample_of(tasks: tuple[str, ...]) -> Sample:
    """The sample of runs on these tasks; its draws are kept for their next figure."""
    return Sample(tasks)


def _bounds(replicates: Array) -> tuple[Any, Any]:
    """The percentile interval, column by column."""
    tail = (1 - CONFIDENCE) / 2
    low, high = np.nanquantile(replicates, (tail, 1 - tail), axis=0)
    return low, high


def _figure(name: str, value: Any, low: Any, high: Any, n: int) -> Figure:
    bounds = {"low": low, "high": high}
    known = {key: float(bound) for key, bound in bounds.items() if bound is not None}
    return Figure(name=name, value=float(value), n=n, **known)


def _first(bounds: Array | None) -> Any:
    return None if bounds is None else bounds[0]
