"""Leaderboards, and what a score is worth on one: MLE-bench's medals, MLE-Dojo's HumanRank.

A leaderboard of a bundled task holds *reference solutions*, which programs made: it is never called
human. Scores of competitions' own leaderboards are people's.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mle_ideator.types import Score, Value

if TYPE_CHECKING:
    from fractions import Fraction

Medal = Literal["gold", "silver", "bronze"]
MEDALS: tuple[Medal, ...] = ("gold", "silver", "bronze")
Rule = Literal["mlebench", "strict"]
DECIMALS = 5
"""To which mle-bench rounds scores before it compares them."""
_IN_ORDER = 0.95
"""Share of unequal neighbours that must agree on a direction."""


class Leaderboard(Value, frozen=True, kw_only=True):
    """Private scores of a task's other solutions, best first.

    By the rule `mlebench` a score is rounded to five decimals before it is compared, and the median
    is a float, as in OpenAI's mle-bench. By the rule `strict` nothing is rounded, and numbers
    are what their decimal digits say: the median of .7 and .6 is .65, not a little less.
    """

    scores: tuple[float, ...]
    higher_is_better: bool
    people: bool = False
    """Are these people's scores? Else they are reference solutions'."""
    rule: Rule = "mlebench"

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
        return float(self._median)

    def medal(self, score: Score | None) -> Medal | None:
        """The best medal that a private score earns; its threshold suffices."""
        value = self._compared(score)
        if value is None:
            return None
        exact = self._exact
        return next((m for m in MEDALS if not self._better(exact(self.threshold(m)), value)), None)

    def above_median(self, score: Score | None) -> bool:
        """Is it better than the median? To equal it is not enough."""
        value = self._compared(score)
        return value is not None and self._better(value, self._median)

    def human_rank(self, score: Score | None) -> float:
        """1 − the share of entries that are strictly better (MLE-Dojo's HumanRank), 0 for none."""
        if score is None or not math.isfinite(score.value):
            return 0.0
        better = sum(self._better(entry, score.value) for entry in self.scores)
        return (len(self.scores) - better) / len(self.scores)

    @property
    def _median(self) -> float | Fraction:
        middle, odd = divmod(len(self.scores), 2)
        if odd:
            return self._exact(self.scores[middle])
        return (self._exact(self.scores[middle - 1]) + self._exact(self.scores[middle])) / 2

    @property
    def _exact(self) -> Callable[[float], float | Fraction]:
        return float if self.rule == "mlebench" else _as_written

    def _compared(self, score: Score | None) -> float | Fraction | None:
        if score is None or not math.isfinite(score.value):
            return None
        value = float(score.value)
        return round(value, DECIMALS) if self.rule == "mlebench" else self._exact(value)

    def _better(self, one: float | Fraction, other: float | Fraction) -> bool:
        return one > other if self.higher_is_better else one < other


def _as_written(value: float) -> Fraction:
    from fractions import Fraction  # takes a while, and few need it

    return Fraction(repr(float(value)))


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


def read_scores(file: Path) -> tuple[float, ...]:
    """The finite scores of a competition's `leaderboard.csv` (column `score`), in its order.

    Raises `ValueError` in a few words if it holds none, and `OSError`.
    """
    with file.open(encoding="utf-8-sig", newline="") as lines:
        rows = csv.DictReader(lines)
        names = rows.fieldnames or []
        if any(name.startswith("version https://git-lfs") for name in names):
            raise ValueError("is a pointer of Git LFS; get the file with `git lfs pull`")
        if "score" not in names:
            raise ValueError("has no column `score`")
        scores = tuple(_finite(rows))
    if not scores:
        raise ValueError("has no score")
    return scores


def _finite(rows: Iterable[Mapping[str, str | None]]) -> Iterable[float]:
    """Teams without a score have an empty cell."""
    for row in rows:
        text = (row["score"] or "").strip()
        value = float(text) if text else math.nan
        if math.isfinite(value):
            yield value


def direction_of(scores: Iterable[float]) -> bool | None:
    """Is higher better, as the order of a whole leaderboard tells? `None` if it does not.

    Of all neighbours with different scores, at least 95 % have to agree.
    """
    steps = [first > second for first, second in pairwise(scores) if first != second]
    if not steps:
        return None
    falling = sum(steps) / len(steps)
    if falling >= _IN_ORDER:
        return True
    return False if falling <= 1 - _IN_ORDER else None
