"""Metrics of rankings: each group's rows are put in order by their predictions, highest first.

Shapes, for n rows: relevance (n,) not negative, predicted (n,), group (n,) whole numbers from 0.
A metric is the mean over the groups, with equal weight. Groups without a relevant row are left
out: no order of theirs is better than another. Equal predictions stand for every order of their
rows, each as likely as the next, and score what these do on average (McSherry & Najork, "Computing
information retrieval performance measures efficiently in the presence of tied scores", ECIR 2008):
so neither the order of rows nor a tie wins anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mle_ideator.benchmarks.grading.formulas import Array, Undefined


@dataclass(frozen=True)
class _Ranked:
    """Rows in their order: by group, within it by prediction."""

    order: Array
    group: Array
    position: Array
    """Within the group, from 1."""
    tie: Array
    """Number of the run of equal predictions within a group."""
    tie_start: Array
    """Rows of the group before that run."""


def _ranked(predicted: Array, group: Array) -> _Ranked:
    order = np.lexsort((-predicted, group))
    group, predicted = group[order], predicted[order]
    first = _changes(group)
    position = np.arange(len(group)) - np.flatnonzero(first)[np.cumsum(first) - 1] + 1
    begins = first | _changes(predicted)
    tie = np.cumsum(begins) - 1
    return _Ranked(order, group, position, tie, position[begins][tie] - 1)


def _changes(values: Array) -> Array:
    """True at the first row, and where a value differs from the one before."""
    return np.concatenate([[True], values[1:] != values[:-1]])


def ndcg(relevance: Array, predicted: Array, group: Array, at: int) -> float:
    """Discounted gain of the first `at` rows, over that of the best order.

    The gain is the relevance itself (linear, as in scikit-learn), not 2^relevance − 1.
    """
    ranked = _ranked(predicted, group)
    discount = np.where(ranked.position <= at, 1 / np.log2(ranked.position + 1), 0)
    gain = _mean_of_ties(relevance[ranked.order], ranked.tie)
    most = relevance[np.lexsort((-relevance, group))]
    gained = np.bincount(ranked.group, gain * discount)
    return _mean_share(gained, np.bincount(ranked.group, most * discount))


def average_precision_at(relevance: Array, predicted: Array, group: Array, at: int) -> float:
    """Mean average precision at `at`, as Kaggle has it: over the lesser of `at` and the relevant.

    A row is relevant if its relevance is above 0.
    """
    ranked = _ranked(predicted, group)
    relevant = np.asarray(relevance[ranked.order] > 0, float)
    total = np.bincount(ranked.group, relevant)
    of_tie, size = np.bincount(ranked.tie, relevant), np.bincount(ranked.tie)[ranked.tie]
    before = _sum_before(of_tie)[ranked.tie] - _sum_before(total)[ranked.group]
    share = _mean_of_ties(relevant, ranked.tie)
    # If the row at this position is relevant, then so are, on average, that many up to it:
    within = ranked.position - 1 - ranked.tie_start
    found = before + 1 + within * (share * size - 1) / np.maximum(size - 1, 1)
    precision = np.where(ranked.position <= at, share * found / ranked.position, 0)
    return _mean_share(np.bincount(ranked.group, precision), np.minimum(total, at))


def _mean_of_ties(values: Array, tie: Array) -> Array:
    return np.asarray((np.bincount(tie, values) / np.bincount(tie))[tie])


def _sum_before(values: Array) -> Array:
    return np.asarray(np.cumsum(values) - values)


def _mean_share(gained: Array, most: Array) -> float:
    """Over the groups in which something can be gained."""
    possible = most > 0
    if not possible.any():
        raise Undefined("it needs a group with a relevant row")
    return float(np.mean(gained[possible] / most[possible]))
