"""Leaderboards, and what a score is worth on one: MLE-bench's medals, MLE-Dojo's HumanRank.

A leaderboard of a bundled task holds *reference solutions*, which programs made: it is never called
human. Scores of competitions' own leaderboards are people's.
"""

from __future__ import annotations

import math
from typing import Literal

from mle_ideator.types import Score, Value

Medal = Literal["gold", "silver", "bronze"]
MEDALS: tuple[Medal, ...] = ("gold", "silver", "bronze")
_DECIMALS = 5


class Leaderboard(Value, frozen=True, kw_only=True):
    """Private scores of a task's other solutions, best first."""

    scores: tuple[float, ...]
    higher_is_better: bool
    people: bool = False
    """Are these people's scores? Else they are reference solutions'."""

    def __post_init__(self) -> None:
        in_order = tuple(sorted(self.scores, reverse=self.higher_is_better))
        if not self.scores or in_order != self.scores or not all(map(math.isfinite, self.scores)):
            raise ValueError("a leaderboard has finite scores, the best first")

    def threshold(self, medal: Medal) -> float:
        """The score of the last place that has this medal (MLE-bench's rule)."""
        place = medal_places(len(self.scores))[medal]
        return self.scores[place - 1]

    @property
    def median(self) -> float:
        middle = len(self.scores) // 2
        if len(self.scores) % 2:
            return self.scores[middle]
        return (self.scores[middle - 1] + self.scores[middle]) / 2

    def medal(self, score: Score | None) -> Medal | None:
        """The best medal that a private score earns; its threshold suffices."""
        if score is None:
            return None
        value = round(score.value, _DECIMALS)
        return next((m for m in MEDALS if not self._better(self.threshold(m), value)), None)

    def above_median(self, score: Score | None) -> bool:
        """Is it better than the median? To equal it is not enough."""
        return score is not None and self._better(round(score.value, _DECIMALS), self.median)

    def human_rank(self, score: Score | None) -> float:
        """1 − the share of entries that are strictly better (MLE-Dojo's HumanRank), 0 for none."""
        if score is None:
            return 0.0
        better = sum(self._better(entry, score.value) for entry in self.scores)
        return 1 - better / len(self.scores)

    def _better(self, one: float, other: float) -> bool:
        return one > other if self.higher_is_better else one < other


def medal_places(entries: int) -> dict[Medal, int]:
    """The last place, counted from 1, of each medal among so many entries (MLE-bench, Kaggle)."""
    n = entries
    if n < 100:
        gold, silver, bronze = max(1, n // 10), max(1, n // 5), max(1, 2 * n // 5)
    elif n < 250:
        gold, silver, bronze = 10, n // 5, 2 * n // 5
    elif n < 1000:
        gold, silver, bronze = 10 + n // 500, 50, 100
    else:
        gold, silver, bronze = 10 + n // 500, n // 20, n // 10
    return {"gold": gold, "silver": silver, "bronze": bronze}
