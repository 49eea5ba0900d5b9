"""What a run is worth in one number: pluggable, as the papers' own score is not public."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from mle_ideator.benchmarks.leaderboards import Medal
from mle_ideator.benchmarks.measures.values import RunMeasures
from mle_ideator.types import Scores


class Standing(Protocol):
    """Where a run stands, in the end (`RunMeasures`) or at a solution of it (`Moment`)."""

    @property
    def scores(self) -> Scores: ...

    @property
    def human_rank(self) -> float: ...

    @property
    def medal(self) -> Medal | None: ...


@dataclass(frozen=True)
class Scoring:
    """A number for a standing; more is better."""

    name: str
    """In words, for the reader of a report."""
    of: Callable[[Standing], float]
    """A finite number."""
    invalid: float = 0.0
    """What a run without a valid solution has."""
    needs_leaderboard: bool = True
    """Is it undefined on a task without one?"""

    def of_run(self, run: RunMeasures) -> float | None:
        """The score of a run in the end; `None` where it is undefined on the task."""
        if not self.defined_on(run):
            return None
        return self.of(run) if run.valid else self.invalid

    def defined_on(self, run: RunMeasures) -> bool:
        return run.ranked or not self.needs_leaderboard


HUMAN_RANK = Scoring("100 × HumanRank, 0 for an invalid run", lambda at: 100 * at.human_rank)
"""The default, by our choice: MLE-Dojo's HumanRank in percent."""
