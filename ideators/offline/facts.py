"""A help state in facts: what ranking and wording work on."""

from __future__ import annotations

from math import inf

from mle_ideator.recipes import Column, Profile
from mle_ideator.types import Score, Solution, Task, Value

MANY_LEVELS = 10
"""A categorical column with more levels than this is of high cardinality."""


class Attempt(Value, frozen=True, kw_only=True):
    """One idea of this session and what it brought."""

    operations: frozenset[str]
    """What the idea asked for."""
    refused: frozenset[str]
    """What of it the solution that followed does not have, going by its recipe."""
    here: bool
    """May it have been carried out on the reading's recipe?"""
    failed: bool
    """No valid solution followed."""
    untried: bool
    """The session had no time to carry it out."""
    before: Score | None
    """The best score when the idea was given."""
    after: Score | None
    """The score of the solution that followed."""

    def improved(self, min_delta: float) -> bool:
        return self.after is not None and self.after.better_than(self.before, min_delta)


class Reading(Value, frozen=True, kw_only=True):
    """A help state in facts."""

    task: Task
    metric: str
    """The metric's name in small letters and digits only."""
    profile: Profile | None
    base: Solution | None
    """The solution to build on; `None` if there is none yet."""
    recipe: frozenset[str]
    """Operations in the base, or in the workspace's code if there is no base."""
    astray: str
    """Why the workspace must go back to the base; empty if it need not."""
    score: Score | None
    """The base's score."""
    attempts: tuple[Attempt, ...]
    known_recipes: frozenset[frozenset[str]]
    """Of the solutions so far, as far as they were read."""
    deep: bool
    """Is it work of deep networks on what is no table?"""
    progress: float
    """Share of the help requests that are used up, 0 to 1."""
    seconds: float
    """Longest that the next cell may take."""
    slow: bool
    """A cell has run into its time limit."""
    gap: float
    """How much better the base says it is than it was graded, relative; 0 if unknown."""
    seed: int

    def metric_has(self, *names: str) -> bool:
        """Is one of these a part of the metric's name?"""
        return any(name in self.metric for name in names)

    @property
    def log_metric(self) -> bool:
        """Does the metric compare logarithms?"""
        return self.metric_has("msle", "logerror")

    def columns(self, kind: str) -> tuple[Column, ...]:
        """The columns of a kind; none if no profile was seen."""
        return tuple(c for c in self.profile.columns if c.kind == kind) if self.profile else ()

    @property
    def numbers(self) -> tuple[Column, ...]:
        return self.columns("number")

    @property
    def categories(self) -> tuple[Column, ...]:
        return self.columns("category")

    @property
    def texts(self) -> tuple[Column, ...]:
        return self.columns("text")

    @property
    def dates(self) -> tuple[Column, ...]:
        return self.columns("date")

    @property
    def high_cardinality(self) -> tuple[Column, ...]:
        return tuple(c for c in self.categories if c.levels > MANY_LEVELS)

    @property
    def missing(self) -> tuple[Column, ...]:
        return tuple(c for c in self.numbers if c.missing > 0)

    @property
    def skewed(self) -> tuple[Column, ...]:
        return tuple(c for c in self.numbers if abs(c.skew or 0) > 2)

    @property
    def unlisted(self) -> int:
        """How many numeric columns the profile counts and does not list."""
        return self.profile.unlisted if self.profile else 0

    @property
    def time(self) -> str | None:
        """The date column, where no date of the test rows occurs in the training rows."""
        return self.profile.time if self.profile else None

    @property
    def between(self) -> bool:
        """Do the test rows lie between the training rows in time, not after them?"""
        return bool(self.profile and self.profile.gaps)

    @property
    def group(self) -> str | None:
        """The column whose levels in test are new."""
        return self.profile.group if self.profile else None

    @property
    def side_tables(self) -> tuple[str, ...]:
        return self.profile.side_tables if self.profile else ()

    @property
    def image(self) -> bool:
        return self.profile.image is not None if self.profile else "image" in self.task.type

    @property
    def text(self) -> bool:
        return bool(self.texts) if self.profile else "text" in self.task.type

    @property
    def tabular(self) -> bool:
        return not self.image and not self.text

    @property
    def rows(self) -> int:
        return self.profile.rows if self.profile else self.task.rows[0]

    @property
    def has_text_features(self) -> bool:
        return bool(self.recipe & {"text_words", "text_characters"})

    @property
    def classification(self) -> bool:
        return self.task.prediction != "value"

    @property
    def targets(self) -> int:
        """How many target columns there are."""
        return len(self.profile.targets) if self.profile else len(self.task.targets)

    @property
    def target_skew(self) -> float:
        """Skewness of the first target; 0 if unknown."""
        targets = self.profile.targets if self.profile else ()
        return (targets[0].skew or 0.0) if targets else 0.0

    @property
    def target_low(self) -> float:
        """Least value of the first target; minus infinity if unknown."""
        targets = self.profile.targets if self.profile else ()
        low = targets[0].low if targets else None
        return -inf if low is None else low

    @property
    def model(self) -> str | None:
        """The base's model, if it is known."""
        return next((name for name in sorted(self.recipe) if name.startswith("model_")), None)
