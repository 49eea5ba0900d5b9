"""What was tried, and what is read from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from mle_ideator.benchmarks.measures.figures import Figure
from mle_ideator.rl.values import RolloutResult, StateCard
from mle_ideator.types import Usage, Value

Grouping = Literal["all", "task", "kind", "category"]
Measure = Literal["reward", "improved", "gain"]
"""What two contenders are compared by. The reward counts what the *idea* earned; who declines can
improve, if the implementer finds something without help, but earns nothing."""

DEFINITIONS: dict[str, str] = {
    "reward": "Mean one-step reward: 1 improved, 0 not, -1 no well-formed idea.",
    "improved_rate": "Answers after which the solution was better than any before, in percent.",
    "any_improved_rate": "States that at least one of the answers improved, in percent.",
    "gain_rate": "Mean normalised gain, in percent; where no solution came of it, 0.",
    "invalid_rate": "Answers that are no well-formed idea, in percent.",
    "seconds": "Mean seconds that the execution of an answer took.",
    "ideator_seconds": "Mean seconds that the ideator took to answer.",
}
"""What each figure is, in one line. The order is that of tables."""


class Try(Value, frozen=True, kw_only=True):
    """One answer of one ideator to one help state, and what came of it."""

    contender: str
    state: str
    """Its id."""
    seed: int
    """The evaluation's."""
    place: int
    """Which of the answers to this state it is, from 0."""
    result: RolloutResult
    """Its seed is the one drawn for (state, seed, place): the same for all contenders."""
    ideator_seconds: float = 0.0
    usage: Usage = Usage()
    """What the ideator's model used."""

    @property
    def masked(self) -> bool:
        """Is the runtime, or a broken ideator, why nothing is known of it?"""
        return self.result.reward is None


class Evaluation(Value, frozen=True, kw_only=True):
    """Everything that was tried. Each contender has a try for each state and place."""

    contenders: tuple[str, ...]
    states: tuple[StateCard, ...]
    ideas: int
    seed: int
    tries: tuple[Try, ...]

    def of(self, contender: str) -> tuple[Try, ...]:
        return tuple(one for one in self.tries if one.contender == contender)


class Row(Value, frozen=True, kw_only=True):
    """The figures of one contender over a group of help states, or of ideas."""

    contender: str
    by: Grouping
    group: str
    """Which task, kind or category; empty for all."""
    states: int
    tries: int
    """Those that have a result."""
    masked: int
    """Those that have none, because something broke: they are in no figure."""
    invalid: int
    figures: tuple[Figure, ...]
    """In the order of `DEFINITIONS`; of a category its `share` of the ideas, in percent, and of
    these ideas `reward`, `improved_rate`, `gain_rate` and `seconds`."""

    def figure(self, name: str) -> Figure:
        """The figure of that name. Raises `KeyError`."""
        return {figure.name: figure for figure in self.figures}[name]


class PairRow(Value, frozen=True, kw_only=True):
    """Two contenders on the help states of a group on which both have a result."""

    first: str
    second: str
    measure: Measure
    by: Grouping
    group: str
    states: int
    left_out: int
    """States on which one of the two has no result; for the gain also those without a score."""
    wins: int
    ties: int
    losses: int
    """States on which the mean of `first` is higher, equal, lower."""
    difference: Figure
    """Mean of `first` − that of `second`, in percentage points but for the reward."""
    p_sign: float | None
    """Two-sided sign test on wins and losses; `None` without states."""
    p_permutation: float | None
    """Two-sided, by exchanging the two on each state; `None` without states."""
    p_holm: float | None
    """`p_permutation`, corrected for all pairs of the same measure and group (Holm)."""

    @property
    def significant(self) -> bool:
        """Is the corrected p-value below 5 %?"""
        return self.p_holm is not None and self.p_holm < 0.05


class Shift(Value, frozen=True, kw_only=True):
    """How much more of its ideas one contender gives to a category than another."""

    first: str
    second: str
    category: str
    difference: Figure
    """Share of `first` − share of `second`, in percentage points; named `shift`."""


class Findings(Value, frozen=True, kw_only=True):
    """All that is read from an evaluation."""

    contenders: tuple[str, ...]
    tasks: tuple[str, ...]
    states: int
    ideas: int
    seed: int
    rows: tuple[Row, ...]
    pairs: tuple[PairRow, ...]
    shifts: tuple[Shift, ...]

    def rows_by(self, by: Grouping) -> Sequence[Row]:
        return [row for row in self.rows if row.by == by]

    def pairs_by(self, by: Grouping, *measures: Measure) -> Sequence[PairRow]:
        """By these measures, or without any by all."""
        return [p for p in self.pairs if p.by == by and (not measures or p.measure in measures)]
