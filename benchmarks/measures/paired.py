"""Two contenders on the same tasks and seeds: what differs, and whether that is chance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations, groupby
from typing import Literal

import msgspec
import numpy as np

from mle_ideator.benchmarks.measures.figures import PairedComparison
from mle_ideator.benchmarks.measures.ideas import category_shifts
from mle_ideator.benchmarks.measures.resampling import Array, sample_of
from mle_ideator.benchmarks.measures.scoring import HUMAN_RANK, Scoring
from mle_ideator.benchmarks.measures.values import Contender, RunMeasures

Pair = tuple[RunMeasures, RunMeasures]
Test = Literal["sign-flip", "wilcoxon", "none"]

FEW_TASKS = 15
"""Up to so many tasks that differ, every assignment of signs is gone through."""
_DECIMALS = 9
"""Differences are compared so far: what sums leave beyond is no difference."""


def compare_all(
    runs: Iterable[RunMeasures], *, scoring: Scoring = HUMAN_RANK, min_delta: float = 0.0
) -> tuple[PairedComparison, ...]:
    """Every pair of contenders, the p-values corrected for how many pairs there are (Holm)."""
    own: dict[Contender, list[RunMeasures]] = defaultdict(list)
    for run in runs:
        own[run.cell.contender].append(run)
    compared = [
        compare(own[one], own[other], scoring=scoring, min_delta=min_delta)
        for one, other in combinations(sorted(own), 2)
    ]
    return tuple(
        msgspec.structs.replace(comparison, p_holm=corrected)
        for comparison, corrected in zip(
            compared, holm([comparison.p_value for comparison in compared]), strict=True
        )
    )


def compare(
    first: Sequence[RunMeasures],
    second: Sequence[RunMeasures],
    *,
    scoring: Scoring = HUMAN_RANK,
    min_delta: float = 0.0,
) -> PairedComparison:
    """The runs of one contender against those of another; both have some.

    `min_delta`, in the scoring's unit, is the least difference that is no tie on a task.
    """
    pairs, only_first, only_second = _matched(first, second)
    scored = [pair for pair in pairs if all(map(scoring.defined_on, pair))]
    differences = [
        (scoring.of_run(one) or 0.0) - (scoring.of_run(other) or 0.0) for one, other in scored
    ]
    tasks = [one.cell.task for one, _ in scored]
    by_task = np.round(_means(tasks, differences), _DECIMALS)
    test, p_value = _test(by_task)
    return PairedComparison(
        first=first[0].cell.contender,
        second=second[0].cell.contender,
        scoring=scoring.name,
        difference=sample_of(tuple(tasks)).mean("difference", differences),
        tasks=len(by_task),
        pairs=len(scored),
        only_first=only_first,
        only_second=only_second,
        wins=int((by_task > min_delta).sum()),
        ties=int((abs(by_task) <= min_delta).sum()),
        losses=int((by_task < -min_delta).sum()),
        test=test,
        p_value=p_value,
        p_holm=p_value,
        effect=rank_biserial(by_task),
        shifts=category_shifts(pairs),
    )


def _matched(
    first: Sequence[RunMeasures], second: Sequence[RunMeasures]
) -> tuple[list[Pair], int, int]:
    """The cells that both have, in order, and how many only one has.

    Of a cell that was run several times, the runs are matched in order.
    """
    ours, theirs = _by_cell(first), _by_cell(second)
    common = sorted(ours.keys() & theirs.keys())
    pairs = [(ours[key], theirs[key]) for key in common]
    return pairs, len(ours) - len(pairs), len(theirs) - len(pairs)


def _by_cell(runs: Sequence[RunMeasures]) -> dict[tuple[str, int, int], RunMeasures]:
    """By task, seed, and which run of that it is."""
    ordered = sorted(runs, key=lambda run: (run.cell.task, run.cell.seed, run.folder))
    same = groupby(ordered, key=lambda run: (run.cell.task, run.cell.seed))
    return {(*key, place): run for key, group in same for place, run in enumerate(group)}


def _means(tasks: Sequence[str], values: Sequence[float]) -> Array:
    """The mean of each task; equal tasks stand side by side."""
    rows = groupby(zip(tasks, values, strict=True), key=lambda row: row[0])
    return np.array([np.mean([value for _, value in group]) for _, group in rows], dtype=float)


def _test(differences: Array) -> tuple[Test, float | None]:
    """Two-sided, of tasks' mean differences: is their sign a matter of chance?"""
    if not len(differences):
        return "none", None
    unequal = differences[differences != 0]
    if len(unequal) <= FEW_TASKS:
        return "sign-flip", sign_flip(unequal)
    from scipy.stats import wilcoxon

    return "wilcoxon", float(wilcoxon(unequal).pvalue)


def sign_flip(differences: Array) -> float:
    """The share of all assignments of signs whose sum is at least as far from 0 as this one."""
    count = len(differences)
    bits = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
    sums = abs((1 - 2 * bits) @ differences)
    return float(np.mean(sums >= abs(differences.sum()) - 10.0**-_DECIMALS))


def rank_biserial(differences: Array) -> float | None:
    """(ranks of positive − ranks of negative differences) / all ranks; 0 if all are equal."""
    if not len(differences):
        return None
    unequal = differences[differences != 0]
    if not len(unequal):
        return 0.0
    from scipy.stats import rankdata

    ranks = rankdata(abs(unequal))
    return float((ranks * np.sign(unequal)).sum() / ranks.sum())


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Corrected p-values in the same order; those that are `None` are no tests and do not count."""
    known = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    worst = 0.0
    for place, (p, i) in enumerate(known):
        worst = max(worst, min(1.0, p * (len(known) - place)))
        corrected[i] = worst
    return corrected
