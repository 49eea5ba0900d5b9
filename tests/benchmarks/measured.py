"""Runs' measures, made by hand for the tests of figures."""

from __future__ import annotations

from mle_ideator.benchmarks.leaderboards import Medal
from mle_ideator.benchmarks.measures.values import Cell, Contender, Moment, RunMeasures
from mle_ideator.types import Score, Scores, Usage


def scores(validation: float | None, private: float | None = None) -> Scores:
    """Higher is better."""
    return Scores(
        validation=None if validation is None else Score(validation, True),
        private=None if private is None else Score(private, True),
    )


def run(
    task: str = "t", ideator: str = "a", seed: int = 0, rank: float | None = None, **known: object
) -> RunMeasures:
    """A run with a HumanRank; without one it is invalid."""
    values: dict[str, object] = {
        "cell": Cell(task, Contender(ideator, "offline"), seed),
        "folder": f"runs/{task}/offline+{ideator}/seed-{seed}",
        "outcome": "steps",
        "valid": rank is not None,
        "scores": Scores(),
        "human_rank": rank or 0.0,
        "medal": None,
        "above_median": False,
        "steps": 8,
        "steps_to_first_valid": None,
        "seconds_to_first_valid": None,
        "duration_s": 100.0,
        "help_requests": 0,
        "improvements": 0,
        "usage": Usage(),
        "history": (),
        "ideas": (),
    }
    return RunMeasures(**{**values, **known})  # type: ignore[arg-type]


def moment(
    step: int,
    validation: float | None,
    rank: float = 0.0,
    medal: Medal | None = None,
    at_s: float | None = None,
) -> Moment:
    """A solution; ten seconds a step, if not said otherwise."""
    return Moment(
        step=step,
        at_s=10.0 * step if at_s is None else at_s,
        scores=scores(validation, rank),
        best=True,
        human_rank=rank,
        medal=medal,
    )
