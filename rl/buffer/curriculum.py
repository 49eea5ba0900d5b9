"""The curriculum in pure functions: rewards and counts in, numbers out.

Rewards already know whether a score got better, so the direction of a metric never matters here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mle_ideator.errors import UsageError
from mle_ideator.rl.buffer.config import CurriculumConfig
from mle_ideator.rl.reward import REWARDS

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

_INVALID = REWARDS["invalid_format"]
LONGEST_AWAY = 10**9


class Group(NamedTuple):
    """What the ideas of one help state earned."""

    rewards: tuple[float, ...]
    """What μ and σ are taken of."""
    masked: int
    """Ideas that the runtime lost."""
    invalid: int
    """Ideas without a readable format."""


def read_group(
    rewards: Sequence[float | None], invalid: int = 0, executed_only: bool = True
) -> Group:
    """Rewards as a trainer has them, told apart: `None` or NaN is masked, −1 is an invalid format.

    `invalid` counts further ideas of that kind that are not among the rewards. Raises `UsageError`
    for what is no reward.
    """
    kept = [float(r) for r in rewards if r is not None and r == r]
    if invalid < 0 or not all(math.isfinite(r) for r in kept):
        raise UsageError("a reward must be a finite number or None, and a count not negative.")
    executed = [r for r in kept if r != _INVALID]
    found = len(kept) - len(executed) + invalid
    counted = executed if executed_only else executed + [-1.0] * found
    return Group(tuple(counted), len(rewards) - len(kept), found)


class Statistics(NamedTuple):
    """Running mean and spread of rewards, of which old ones weigh less and less."""

    weight: float = 0.0
    mean: float = 0.0
    squares: float = 0.0
    """Weighted sum of squared distances from the mean."""

    @property
    def std(self) -> float:
        """Of the population, as the group's own σ in GRPO."""
        return math.sqrt(max(self.squares, 0.0) / self.weight) if self.weight else 0.0


def merged(old: Statistics, rewards: Sequence[float], memory: float) -> Statistics:
    """The statistics after one more group. Equal rewards have a spread of exactly 0."""
    count, weight = len(rewards), old.weight * memory
    low, high = min(rewards), max(rewards)
    mean = low if low == high else math.fsum(rewards) / count
    squares = 0.0 if low == high else math.fsum((r - mean) ** 2 for r in rewards)
    shift = mean - old.mean if weight else 0.0
    total = weight + count
    return Statistics(
        total,
        old.mean + shift * count / total if weight else mean,
        old.squares * memory + squares + shift * shift * weight * count / total,
    )


def spread_term(std: float, config: CurriculumConfig) -> float:
    """clip(σ, 0, δ_max)."""
    return min(max(std, 0.0), config.delta_max)


def headroom_term(mean: float, config: CurriculumConfig) -> float:
    """λ · clip(1 − μ, 0, 1)."""
    return config.headroom_weight * min(max(1.0 - mean, 0.0), 1.0)


def potential(mean: float, std: float, config: CurriculumConfig) -> float:
    """Learnability potential P(x) = clip(σ, 0, δ_max) + λ · clip(1 − μ, 0, 1) (AceGRPO)."""
    return spread_term(std, config) + headroom_term(mean, config)


def prior_potential(config: CurriculumConfig) -> float:
    """Of a state of which no idea was executed yet."""
    return potential(config.prior_mean, config.prior_std, config)


def level(value: float, config: CurriculumConfig) -> int:
    """The level of a potential: 0 is the lowest, `config.bins` − 1 the highest."""
    return min(int(value / config.highest_potential * config.bins), config.bins - 1)


def top_fraction(draws: int, config: CurriculumConfig) -> float:
    """Share of the drawable states that is drawn from, after so many draws: from 1 to the floor."""
    progress = min(draws / config.anneal_draws, 1.0) if config.anneal_draws else 1.0
    return 1.0 - (1.0 - config.top_fraction) * progress


def membership(counts: Counts, quota: float) -> Floats:
    """How far each level belongs to the top `quota` states, 0 to 1.

    `counts` are the states at each level, the lowest first. The level at the edge belongs in part,
    all its states alike, so that the memberships of all states sum to `quota`.
    """
    above = counts[::-1].cumsum()[::-1] - counts
    room: Floats = (quota - above) / np.maximum(counts, 1)
    return np.clip(room, 0.0, 1.0)


def task_weights(candidates: Floats, balance: float) -> Floats:
    """How much each task is drawn, for its number of candidates. A task without any is not."""
    positive = candidates > 1e-9
    return np.where(positive, np.where(positive, candidates, 1.0) ** balance, 0.0)


def weighted_index(sums: Floats, u: Floats | float) -> npt.NDArray[np.intp]:
    """Indices that `u`, from 0 to below 1, fall on; `sums` are running sums of the weights.

    An index without weight is never among them. One weight at least must be positive.
    """
    last = sums.searchsorted(sums[-1])
    found: npt.NDArray[np.intp] = np.minimum(sums.searchsorted(u * sums[-1], side="right"), last)
    return found


def resting_limit(not_retired: int, config: CurriculumConfig) -> int:
    """How many states may rest at once."""
    return int(not_retired * config.rest_share)


def flat_run(run: int, rewards: Sequence[float]) -> int:
    """Groups in a row at one end: positive if all ideas improved, negative if none did.

    A group that lies in between, or has any variance, begins anew at 0. One idea can show no
    variance: it changes nothing.
    """
    if len(rewards) < 2:
        return run
    low, high = min(rewards), max(rewards)
    if low != high or 0.0 < low < 1.0:
        return 0
    return max(run, 0) + 1 if low >= 1.0 else min(run, 0) - 1


def away(returns: int, config: CurriculumConfig) -> int:
    """Draws that a state stays retired which came back so often before."""
    if not config.return_after:
        return LONGEST_AWAY
    wait = config.return_after * config.return_growth ** min(returns, 60)
    return int(min(wait, LONGEST_AWAY))
