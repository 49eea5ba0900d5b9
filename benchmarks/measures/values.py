"""What is measured of one run. Everything is read from its folder, and from the leaderboard."""

from __future__ import annotations

from mle_ideator.benchmarks.leaderboards import Medal
from mle_ideator.operations import Category
from mle_ideator.types import Metric, Outcome, Scores, Usage, Value


class Contender(Value, frozen=True, order=True):
    """A pair of agents, by their specs."""

    ideator: str
    implementer: str


class Cell(Value, frozen=True, order=True):
    """One run of the matrix task × contender × seed."""

    task: str
    """As `--task` takes it."""
    contender: Contender
    seed: int


class Moment(Value, frozen=True, kw_only=True):
    """A solution, when it was made."""

    step: int
    at_s: float
    scores: Scores
    best: bool
    """Was it the best so far, under the run's selection policy?"""
    human_rank: float = 0.0
    """Of its private score."""
    medal: Medal | None = None


class TriedIdea(Value, frozen=True, kw_only=True):
    """An idea, and whether the first solution after it was a new best."""

    step: int
    categories: tuple[Category, ...]
    """What it is about, the foremost first; empty where it can not be told."""
    improved: bool


class Flag(Value, frozen=True, kw_only=True):
    """Something in a solution that may not be fair play."""

    code: str
    """A stable name of its kind."""
    line: int
    """In solution.py; 0 for all of it."""
    message: str


class RunMeasures(Value, frozen=True, kw_only=True):
    """One run in numbers. A run without a valid solution has no scores, and is still a run."""

    cell: Cell
    folder: str
    """Of the run, as the report names it: relative to the results."""
    outcome: Outcome | None
    """`None`: it has not ended."""
    valid: bool
    """Is there a final solution, valid when it was run again in a clean sandbox?"""
    scores: Scores
    """Of the final solution, as the clean re-run gave them."""
    human_rank: float
    medal: Medal | None
    above_median: bool
    steps: int
    steps_to_first_valid: int | None
    seconds_to_first_valid: float | None
    duration_s: float
    help_requests: int
    improvements: int
    """Ideas after which the first solution was a new best."""
    usage: Usage
    """Of both agents' models."""
    history: tuple[Moment, ...]
    ideas: tuple[TriedIdea, ...]
    flags: tuple[Flag, ...] = ()
    ranked: bool = True
    """Has the task a leaderboard? Else `human_rank`, `medal` and `above_median` say nothing."""
    detail: str = ""
    """Why it ended so, in words, where the journal tells."""
    title: str = ""
    """Of the task."""
    metric: Metric | None = None
    """Of the task; `None` if not even a session began."""
    baseline: Scores = Scores()
    """The trivial solution's."""
    min_delta: float = 0.0
    """The least gain that counts as better on this task."""
    budget_steps: int | None = None
    """The limit on steps that it ran under, as far as known."""
    budget_s: float | None = None
    """The limit on wall time."""
    ideator_usage: Usage = Usage()
    """The ideator's part of `usage`."""
