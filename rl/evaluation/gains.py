"""How much an answer gained, in a unit that all metrics share."""

from __future__ import annotations

from mle_ideator.rl.evaluation.values import Try
from mle_ideator.types import Score


def normalised_gain(before: Score, after: Score) -> float:
    """The gain in the metric's direction, as a share of the mean magnitude of both scores.

    Between −2 and 2, and 0 where both are 0: small changes are the relative gain, no change of a
    score near 0 outweighs all others, and gain and loss of the same two scores cancel out.
    """
    scale = max(abs(before.value), abs(after.value))
    if scale == 0:
        return 0.0
    was, now = before.value / scale, after.value / scale
    gain = 2 * (now - was) / (abs(now) + abs(was))
    return gain if before.higher_is_better else -gain


def gain_of(one: Try) -> float | None:
    """The normalised gain of a try in percent; `None` if it is masked or no score was there before.

    What made no scored solution gained nothing: the best one before is still there.
    """
    result = one.result
    if one.masked or result.before is None:
        return None
    if result.after is None:
        return 0.0
    return 100 * normalised_gain(result.before, result.after)
