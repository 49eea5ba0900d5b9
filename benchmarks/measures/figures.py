"""The values of figures over tasks and seeds: what a report is made of.

`contenders.figures_of` and `paired.compare` make them from measures; `docs/metrics.md` defines
each figure, with its formula and its source.
"""

from __future__ import annotations

from typing import Literal

from mle_ideator.benchmarks.measures.values import Contender
from mle_ideator.operations import Category
from mle_ideator.types import Value

Axis = Literal["step", "seconds"]

DEFINITIONS: dict[str, str] = {
    "avg_at_k": "Mean over tasks of the mean score of the k seeds; an invalid run scores 0.",
    "best_at_k": "Mean over tasks of the best score of the k seeds; an invalid run scores 0.",
    "human_rank": "Mean share of leaderboard entries that are not better; an invalid run has 0.",
    "valid_rate": "Runs whose final solution is valid in a clean re-run, in percent.",
    "above_median_rate": "Runs better than the leaderboard's median, in percent.",
    "bronze_rate": "Runs whose best medal is bronze, in percent.",
    "silver_rate": "Runs whose best medal is silver, in percent.",
    "gold_rate": "Runs whose best medal is gold, in percent.",
    "any_medal_rate": "Runs with a medal, in percent.",
    "steps_to_first_valid": "Mean step of the first valid solution, over the runs that made one.",
    "steps_to_first_valid_censored": "The same over all runs; one without counts its step limit.",
    "seconds_to_first_valid": "Mean seconds to the first valid solution, over runs that made one.",
    "help_requests": "Help requests a run.",
    "improvements": "Ideas a run after which the first solution was a new best.",
    "improving_share": "Ideas after which the first solution was a new best, in percent.",
    "steps": "Steps a run.",
    "duration_s": "Seconds a run.",
    "tokens": "Tokens a run, of both agents' models, in and out.",
    "ideator_tokens": "Tokens a run, of the ideator's model, in and out.",
    "cost_usd": "US dollars a run, of both agents' models.",
}
"""What each figure is, in one line. The order is that of tables."""


class Figure(Value, frozen=True, kw_only=True):
    """One number over runs, with its 95 % interval."""

    name: str
    """A key of `DEFINITIONS`, where the figure is one of a contender."""
    value: float | None
    """`None` where there is nothing to take it from: no run of its kind, or unknown costs."""
    low: float | None = None
    high: float | None = None
    """Bounds of the interval; `None` where fewer than two runs speak."""
    n: int
    """The runs that it is taken from (for shares of ideas: the ideas)."""
    standard_error: float | None = None
    """Of the per-seed percentages, as MLE-bench states it; only of rates with two or more seeds."""


class Point(Value, frozen=True):
    """One point of a curve, with its 95 % band."""

    at: float
    value: float
    low: float | None = None
    high: float | None = None


class Curve(Value, frozen=True, kw_only=True):
    """A figure as it grows with steps or seconds; it holds its value between points."""

    name: Literal["score", "any_medal_rate", "valid_rate"]
    """The figure: by the solution best by *validation* at that point, never by test."""
    axis: Axis
    points: tuple[Point, ...]


class CategoryFigures(Value, frozen=True, kw_only=True):
    """The ideas of one category, by their foremost one; `None`: it could not be told."""

    category: Category | None
    ideas: int
    share: Figure
    """Of the contender's ideas, in percent; named `share`."""
    improved: Figure
    """Of these ideas, those that improved, in percent; named `improved`."""


class Counts(Value, frozen=True, kw_only=True):
    """What a contender's figures are taken from, and what is odd about it."""

    runs: int
    """All of them: those that failed or have not ended are among them."""
    tasks: int
    seeds: int
    """The k of Avg@k: the most runs of one task."""
    fewest_seeds: int
    """The fewest runs of one task; less than `seeds` if runs are missing."""
    missing: int
    """Cells that were asked for and have no run; they are in no figure."""
    failed: int
    """Runs that the runtime broke off; they count as they stand, mostly as invalid."""
    unended: int
    """Runs under way or killed; they count as they stand, mostly as invalid."""
    invalid: int
    flagged: int
    unranked: int
    """Runs on tasks without a leaderboard: in no figure that needs one."""


class ContenderFigures(Value, frozen=True, kw_only=True):
    """All figures of one contender."""

    contender: Contender
    counts: Counts
    scoring: str
    """What the score is, in words."""
    figures: tuple[Figure, ...]
    """In the order of `DEFINITIONS`; all names are there."""
    categories: tuple[CategoryFigures, ...]
    """Every category in the order of `operations.Category`, at last `None`."""
    curves: tuple[Curve, ...]

    def figure(self, name: str) -> Figure:
        """The figure of that name. Raises `KeyError`."""
        found = {figure.name: figure for figure in self.figures}
        return found[name]

    def curve(self, name: str, axis: Axis) -> Curve:
        """The curve of that name and axis. Raises `KeyError`."""
        found = {(curve.name, curve.axis): curve for curve in self.curves}
        return found[(name, axis)]  # type: ignore[index]


class CategoryShift(Value, frozen=True, kw_only=True):
    """How much more of its ideas one contender gives to a category than another."""

    category: Category | None
    difference: Figure
    """Share of `first` − share of `second`, in percentage points; named `shift`."""


class PairedComparison(Value, frozen=True, kw_only=True):
    """Two contenders on the cells (task, seed) that both have."""

    first: Contender
    second: Contender
    scoring: str
    difference: Figure
    """Avg@k of `first` − that of `second` on these cells; named `difference`, n is the pairs."""
    tasks: int
    pairs: int
    """Cells that both have."""
    only_first: int
    only_second: int
    """Cells that one alone has: left out."""
    wins: int
    ties: int
    losses: int
    """Tasks on which the mean of `first` is better, equal within the least difference, worse."""
    test: Literal["sign-flip", "wilcoxon", "none"]
    """Which test; `none` where no task is common or no difference is there to be tested."""
    p_value: float | None
    """Two-sided, over tasks."""
    p_holm: float | None
    """The same, corrected for all comparisons that were made together (Holm)."""
    effect: float | None
    """Matched-pairs rank-biserial correlation, −1 to 1; positive where `first` is better."""
    shifts: tuple[CategoryShift, ...]
    """Of idea categories, on the tasks that both have."""

    @property
    def significant(self) -> bool:
        """Is the corrected p-value below 5 %?"""
        return self.p_holm is not None and self.p_holm < 0.05


class Figures(Value, frozen=True, kw_only=True):
    """Everything over tasks and seeds, of all contenders."""

    contenders: tuple[ContenderFigures, ...]
    """Sorted."""
    comparisons: tuple[PairedComparison, ...]
    """Every pair of contenders, the earlier first."""
