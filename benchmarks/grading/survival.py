"""The metric of survival times, some of which are only known to be longer than observed."""

from __future__ import annotations

import numpy as np

from mle_ideator.benchmarks.grading.formulas import Array, Undefined


def c_index(time: Array, predicted: Array, event: Array) -> float:
    """Harrell's concordance index, in O(n log² n); shapes (n,), event 1 or 0.

    Of all pairs of which is known who came first, the share for which the shorter prediction says
    so; equal predictions count half. It is known if the shorter time ended in an event, also
    where the other was cut short at that very time; not where both had their event then.
    """
    # By time, the cut short last. Those whose events coincide stand with falling predictions,
    # so that none of their pairs, which do not count, looks right.
    order = np.lexsort((-predicted, 1 - event, time))
    ended = event[order] == 1
    comparable = int((len(time) - _ends(time[order], ended))[ended].sum())
    if not comparable:
        raise Undefined("it needs two rows of which is known who came first")
    ranks = np.unique(predicted, return_inverse=True)[1][order]
    right = _higher_later(ranks, ended)
    return (right + _tied(time, predicted, event) / 2) / comparable


def _tied(time: Array, predicted: Array, event: Array) -> int:
    """Comparable pairs with equal predictions."""
    order = np.lexsort((1 - event, time, predicted))
    time, predicted, ended = time[order], predicted[order], event[order] == 1
    return int((_ends(predicted) - _ends(predicted, time, ended))[ended].sum())


def _ends(*keys: Array) -> Array:
    """For rows that are sorted by the keys: the place after the last row equal to each."""
    begins = np.any([np.concatenate([[True], key[1:] != key[:-1]]) for key in keys], axis=0)
    return np.asarray(np.append(np.flatnonzero(begins), len(begins))[np.cumsum(begins)])


def _higher_later(ranks: Array, counted: Array) -> int:
    """How many pairs there are of a counted row and a later one of higher rank.

    A pair is decided by the highest bit in which its ranks differ. For each bit from the highest,
    rows whose higher bits agree stand together, in their order.
    """
    total = 0
    for bit in reversed(range(int(ranks.max()).bit_length())):
        ones = ranks >> bit & 1
        so_far = np.cumsum(ones)
        to_come = so_far[_ends(ranks >> bit + 1) - 1] - so_far
        total += int(to_come[counted & (ones == 0)].sum())
        order = np.argsort(ranks >> bit, kind="stable")
        ranks, counted = ranks[order], counted[order]
    return total
