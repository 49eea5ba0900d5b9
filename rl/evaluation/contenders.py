"""The figures of each contender: over all help states, by task, by kind, by idea category."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import get_args

from mle_ideator.benchmarks.measures.categories import categories_of
from mle_ideator.benchmarks.measures.figures import Figure
from mle_ideator.benchmarks.measures.resampling import Sample
from mle_ideator.operations import Category
from mle_ideator.rl.evaluation.drawing import states_on
from mle_ideator.rl.evaluation.gains import gain_of
from mle_ideator.rl.evaluation.values import Evaluation, Grouping, Row, Try
from mle_ideator.rl.values import StateCard

UNTOLD = "can not be told"
"""The category of an idea whose words do not tell it."""

Tries = Mapping[str, Sequence[Try]]
"""By help state; a help state without a result is not there."""


def with_result(tries: Iterable[Try]) -> dict[str, list[Try]]:
    """By help state, without those that are masked."""
    found: dict[str, list[Try]] = defaultdict(list)
    for one in tries:
        if not one.masked:
            found[one.state].append(one)
    return dict(found)


def groups_of(states: Sequence[StateCard]) -> Iterator[tuple[Grouping, str, list[StateCard]]]:
    """All help states, then those of each task, then those of each kind that there is."""
    yield "all", "", list(states)
    for task in sorted({card.task for card in states}):
        yield "task", task, [card for card in states if card.task == task]
    for kind in ("draft", "debug", "improve"):
        if own := [card for card in states if card.kind == kind]:
            yield "kind", kind, own


def category_of(one: Try) -> str | None:
    """What its idea is foremost about; `None` if there is no well-formed idea."""
    idea = one.result.idea
    if idea is None or one.result.outcome == "invalid_format":
        return None
    categories = categories_of(idea)
    return categories[0] if categories else UNTOLD


def rows_of(evaluation: Evaluation) -> list[Row]:
    """Of each contender, in the order in which groups and contenders come."""
    rows = []
    own = {name: evaluation.of(name) for name in evaluation.contenders}
    for by, group, cards in groups_of(evaluation.states):
        ids = {card.id for card in cards}
        for name, tries in own.items():
            rows.append(_row(name, by, group, cards, [one for one in tries if one.state in ids]))
    return [*rows, *category_rows(evaluation)]


def _row(
    name: str, by: Grouping, group: str, cards: Sequence[StateCard], tries: Sequence[Try]
) -> Row:
    found = with_result(tries)
    return Row(
        contender=name,
        by=by,
        group=group,
        states=len(found),
        tries=sum(map(len, found.values())),
        masked=sum(one.masked for one in tries),
        invalid=sum(map(_invalid, tries)),
        figures=_figures(cards, found),
    )


def _figures(cards: Sequence[StateCard], tries: Tries) -> tuple[Figure, ...]:
    def mean(name: str, of: Callable[[Try], float | None]) -> Figure:
        return mean_over_states(name, cards, lambda state: _mean(map(of, tries.get(state, ()))))

    def any_improved(state: str) -> float | None:
        return 100.0 * any(map(_improved, tries[state])) if state in tries else None

    return (
        mean("reward", lambda one: one.result.reward),
        mean("improved_rate", lambda one: 100.0 * _improved(one)),
        mean_over_states("any_improved_rate", cards, any_improved),
        mean("gain_rate", gain_of),
        mean("invalid_rate", lambda one: 100.0 * _invalid(one)),
        mean("seconds", lambda one: one.result.seconds),
        mean("ideator_seconds", lambda one: one.ideator_seconds),
    )


def mean_over_states(
    name: str, cards: Sequence[StateCard], of: Callable[[str], float | None]
) -> Figure:
    """The mean over tasks of the mean over their help states; n is the states that have one."""
    known = [(card.task, value) for card in cards if (value := of(card.id)) is not None]
    sample = states_on(tuple(task for task, _ in known))
    return sample.mean(name, [value for _, value in known])


# --------------------------------------------------------------------------- idea categories


def category_rows(evaluation: Evaluation) -> list[Row]:
    """Of each category that any contender had an idea of, and each contender."""
    states = [card.id for card in evaluation.states]
    sample = states_on(tuple(card.task for card in evaluation.states))
    own = {name: with_result(evaluation.of(name)) for name in evaluation.contenders}
    return [
        _category_row(sample, states, name, category, tries)
        for category in categories_in(own.values())
        for name, tries in own.items()
    ]


def categories_in(all_tries: Iterable[Tries]) -> list[str]:
    """All that occur, in the order of `operations.Category`; what can not be told comes last."""
    there = {category_of(one) for tries in all_tries for some in tries.values() for one in some}
    return [name for name in (*get_args(Category), UNTOLD) if name in there]


def _category_row(
    sample: Sample, states: Sequence[str], name: str, category: str, tries: Tries
) -> Row:
    about = {
        state: [one for one in some if category_of(one) == category]
        for state, some in tries.items()
    }

    def mean(figure: str, of: Callable[[Try], float | None]) -> Figure:
        known = [
            [value for one in about.get(state, ()) if (value := of(one)) is not None]
            for state in states
        ]
        return sample.ratio(figure, [*map(sum, known)], [*map(len, known)])

    return Row(
        contender=name,
        by="category",
        group=category,
        states=sum(map(bool, about.values())),
        tries=sum(map(len, about.values())),
        masked=0,
        invalid=0,
        figures=(
            sample.ratio("share", *shares_of(category, states, tries), 100),
            mean("reward", lambda one: one.result.reward),
            mean("improved_rate", lambda one: 100.0 * _improved(one)),
            mean("gain_rate", gain_of),
            mean("seconds", lambda one: one.result.seconds),
        ),
    )


def shares_of(category: str, states: Sequence[str], tries: Tries) -> tuple[list[int], list[int]]:
    """Of each help state: how many ideas are of the category, and how many ideas there are."""
    found = [[category_of(one) for one in tries.get(state, ())] for state in states]
    return (
        [names.count(category) for names in found],
        [len(names) - names.count(None) for names in found],
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _improved(one: Try) -> bool:
    return one.result.improved


def _invalid(one: Try) -> bool:
    return one.result.outcome == "invalid_format"
