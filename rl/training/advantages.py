"""From the rewards of a group to the advantage of each answer (GRPO).

The advantage is the reward less the group's mean, divided by the group's standard deviation if
wanted (`scale`; Dr. GRPO leaves it out, as it weighs nearly uniform groups up). Masked answers
(`None`) are in neither; an answer that could not be read (−1) is in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

Scale = Literal["group", "none"]
_LEAST_STD = 1e-4
"""Added to the standard deviation, as TRL does."""


def advantages(rewards: Sequence[float | None], scale: Scale = "group") -> list[float]:
    """One for each reward; 0 for masked ones, and for all of a group without variance."""
    known = np.array([reward for reward in rewards if reward is not None], float)
    if not informative(rewards):
        return [0.0] * len(rewards)
    mean, divisor = known.mean(), known.std(ddof=1) + _LEAST_STD if scale == "group" else 1.0
    return [0.0 if reward is None else float((reward - mean) / divisor) for reward in rewards]


def informative(rewards: Sequence[float | None]) -> bool:
    """Is there any difference in the group that can be learnt from?"""
    return len({reward for reward in rewards if reward is not None}) > 1
