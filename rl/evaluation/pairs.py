"""Two contenders on the same help states: what differs, and whether that is chance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from statistics import fmean

import msgspec
import numpy as np
from numpy.typing import NDArray

from mle_ideator.benchmarks.measures.paired import FEW_TASKS, holm, sign_flip
from mle_ideator.benchmarks.measures.resampling import SEED
from mle_ideator.rl.evaluation.contenders import (
    categories_in,
    groups_of,
    mean_over_states,
    shares_of,
    with_result,
)
from mle_ideator.rl.evaluation.drawing import states_on
from mle_ideator.rl.evaluation.gains import gain_of
from mle_ideator.rl.evaluation.values import Evaluation, Measure, PairRow, Shift, Try
from mle_ideator.rl.values import StateCard

PERMUTATIONS = 10_000
"""Drawn where there are too many to go through all."""
_AT_ONCE = 500
_TIE = 1e-9
"""What sums leave behind is no difference."""

MEASURES: dict[Measure, Callable[[Try], float | None]] = {
    "reward": lambda one: one.result.reward,
    "improved": lambda one: 100.0 * one.result.improved,
    "gain": gain_of,
}

Both = list[tuple[Try, Try]]
"""Of one help state: the places where both contenders have a result."""


def pairs_of(evaluation: Evaluation) -> list[PairRow]:
    """Every pair of contenders, the earlier first, by each measure, on each group of states."""
    own = {name: evaluation.of(name) for name in evaluation.contenders}
    pairs = {(one, other): matched(own[one], own[other]) for one, other in combinations(own, 2)}
    rows = []
    for by, group, cards in groups_of(evaluation.states):
        for measure in MEASURES:
            differences = {
                names: _differences(cards, both, measure) for names, both in pairs.items()
            }
            compared = [_pair(*names, measure, cards, d) for names, d in differences.items()]
            rows += [
                msgspec.structs.replace(row, by=by, group=group) for row in _corrected(compared)
            ]
    return rows


def matched(first: Sequence[Try], second: Sequence[Try]) -> dict[str, Both]:
    """By help state, what both answered with the same seed; only where both have a result."""
    theirs = {(one.state, one.place): one for one in second if not one.masked}
    found: dict[str, Both] = {}
    for one in first:
        other = theirs.get((one.state, one.place))
        if other and not one.masked:
            found.setdefault(one.state, []).append((one, other))
    return found


def _differences(
    cards: Sequence[StateCard], both: Mapping[str, Both], measure: Measure
) -> dict[str, float]:
    """By help state, the mean difference over the places; states without one are not there."""
    found = {}
    for card in cards:
        pairs = [(MEASURES[measure](a), MEASURES[measure](b)) for a, b in both.get(card.id, ())]
        if known := [a - b for a, b in pairs if a is not None and b is not None]:
            found[card.id] = fmean(known)
    return found


def _pair(
    first: str,
    second: str,
    measure: Measure,
    cards: Sequence[StateCard],
    differences: Mapping[str, float],
) -> PairRow:
    """Of one group, of which it is not yet said which one it is."""
    common = [card for card in cards if card.id in differences]
    values = np.array([differences[card.id] for card in common])
    wins, losses = int((values > _TIE).sum()), int((values < -_TIE).sum())
    weights = _weights([card.task for card in common])
    p_permutation = permutation_p(values * weights) if common else None
    return PairRow(
        first=first,
        second=second,
        measure=measure,
        by="all",
        group="",
        states=len(common),
        left_out=len(cards) - len(common),
        wins=wins,
        ties=len(common) - wins - losses,
        losses=losses,
        difference=mean_over_states(measure, common, differences.get),
        p_sign=sign_p(wins, losses) if common else None,
        p_permutation=p_permutation,
        p_holm=p_permutation,
    )


def _weights(tasks: Sequence[str]) -> NDArray[np.float64]:
    """What each help state weighs in a mean over tasks of means over help states."""
    _, place, sizes = np.unique(list(tasks), return_inverse=True, return_counts=True)
    return 1 / (sizes[place] * max(1, len(sizes)))


def _corrected(rows: list[PairRow]) -> list[PairRow]:
    corrected = holm([row.p_permutation for row in rows])
    return [msgspec.structs.replace(row, p_holm=p) for row, p in zip(rows, corrected, strict=True)]


def sign_p(wins: int, losses: int) -> float:
    """Two-sided: would a fair coin fall as unevenly? Ties say nothing."""
    from scipy.special import bdtr

    return min(1.0, float(2 * bdtr(min(wins, losses), wins + losses, 0.5)))


def permutation_p(differences: NDArray[np.float64]) -> float:
    """Two-sided: how often is the sum as far from 0 if each sign is a matter of chance?

    All assignments of signs where few differ from 0, else `PERMUTATIONS` drawn ones.
    """
    unequal = differences[abs(differences) > _TIE * abs(differences).max(initial=0)]
    if len(unequal) <= FEW_TASKS:
        return sign_flip(unequal)
    rng = np.random.default_rng((SEED, 3))
    total = unequal.sum()
    beyond = 0
    for _ in range(PERMUTATIONS // _AT_ONCE):
        eights = rng.integers(256, size=(_AT_ONCE, len(unequal) // 8 + 1), dtype=np.uint8)
        bits = np.unpackbits(eights, axis=1)
        sums = total - 2 * (bits[:, : len(unequal)].astype(float) @ unequal)
        beyond += int((abs(sums) >= abs(total) * (1 - _TIE)).sum())
    return (1 + beyond) / (1 + PERMUTATIONS)


def shifts_of(evaluation: Evaluation) -> list[Shift]:
    """By pair and category, over the help states on which both have a result."""
    own = {name: with_result(evaluation.of(name)) for name in evaluation.contenders}
    shifts = []
    for one, other in combinations(own, 2):
        common = [
            card for card in evaluation.states if card.id in own[one] and card.id in own[other]
        ]
        states = [card.id for card in common]
        sample = states_on(tuple(card.task for card in common))
        for category in categories_in((own[one], own[other])):
            first, second = (shares_of(category, states, own[name]) for name in (one, other))
            difference = sample.difference_of_ratios("shift", first, second, 100)
            shifts.append(Shift(first=one, second=other, category=category, difference=difference))
    return shifts
