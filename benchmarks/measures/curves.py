"""How figures grow with steps and seconds, by the solution that was best by validation there.

A curve tells of the session as it went: the clean re-run at its end is not in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import get_args

import numpy as np

from mle_ideator.benchmarks.measures.figures import Axis, Curve, Point
from mle_ideator.benchmarks.measures.resampling import Array, sample_of
from mle_ideator.benchmarks.measures.scoring import Scoring
from mle_ideator.benchmarks.measures.values import Moment, RunMeasures

POINTS = 100
"""A curve has at most one point more than this."""


def curves_of(runs: Sequence[RunMeasures], scoring: Scoring) -> tuple[Curve, ...]:
    """Score, medal rate and valid rate, by step and by seconds; without points if there is no run.

    Runs on tasks without a leaderboard are only in those that need none.
    """
    ranked = [run for run in runs if run.ranked]
    scored = [run for run in runs if scoring.defined_on(run)]

    def score(at: Moment | None) -> float:
        return scoring.of(at) if at else scoring.invalid

    curves = []
    for axis in get_args(Axis):
        curves += [
            Curve(name="score", axis=axis, points=_points(scored, axis, score)),
            Curve(name="any_medal_rate", axis=axis, points=_points(ranked, axis, _medal)),
            Curve(name="valid_rate", axis=axis, points=_points(runs, axis, _valid)),
        ]
    return tuple(curves)


def _medal(at: Moment | None) -> float:
    return 100.0 * (at is not None and at.medal is not None)


def _valid(at: Moment | None) -> float:
    return 100.0 * (at is not None)


def bests_by_validation(run: RunMeasures) -> list[Moment]:
    """The solutions that were best by their validation score when they were made, in order.

    Whatever the run itself selected by. An unscored solution never replaces a scored one.
    """
    bests: list[Moment] = []
    for moment in run.history:
        score = moment.scores.validation
        held = bests[-1].scores.validation if bests else None
        if not bests or (score is not None and score.better_than(held, run.min_delta)):
            bests.append(moment)
    return bests


def _points(
    runs: Sequence[RunMeasures], axis: Axis, of: Callable[[Moment | None], float]
) -> tuple[Point, ...]:
    if not runs:
        return ()
    grid = _grid(max(run.steps if axis == "step" else run.duration_s for run in runs), axis)
    values = np.array([_held(run, axis, grid, of) for run in runs])
    middle, low, high = sample_of(tuple(run.cell.task for run in runs)).means(values)
    if low is None or high is None:
        return tuple(Point(at, value) for at, value in zip(grid, middle.tolist(), strict=True))
    rows = zip(grid, middle.tolist(), low.tolist(), high.tolist(), strict=True)
    return tuple(Point(*row) for row in rows)


def _grid(end: float, axis: Axis) -> list[float]:
    """From 0 to the end, in whole steps or evenly; few enough to be drawn."""
    if axis == "step":
        stride = max(1, math.ceil(end / POINTS))
        return [float(step) for step in (*range(0, int(end), stride), int(end))]
    return [float(at) for at in np.linspace(0, end, POINTS + 1)]


def _held(
    run: RunMeasures, axis: Axis, grid: Sequence[float], of: Callable[[Moment | None], float]
) -> Array:
    """The value of one run at each point: that of the best solution up to there."""
    bests = bests_by_validation(run)
    made = [moment.step if axis == "step" else moment.at_s for moment in bests]
    values = np.array([of(None), *map(of, bests)])
    held: Array = values[np.searchsorted(made, grid, side="right")]
    return held
