"""What ideas were about, and which kinds of them helped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from mle_ideator.benchmarks.measures.figures import CategoryFigures, CategoryShift, Figure
from mle_ideator.benchmarks.measures.resampling import Sample, sample_of
from mle_ideator.benchmarks.measures.values import RunMeasures, TriedIdea
from mle_ideator.operations import Category

KINDS: tuple[Category | None, ...] = (*get_args(Category), None)
"""Every category, and at last *can not be told*."""


def foremost(idea: TriedIdea) -> Category | None:
    """An idea counts once: for its foremost category."""
    return idea.categories[0] if idea.categories else None


def category_figures(runs: Sequence[RunMeasures]) -> tuple[CategoryFigures, ...]:
    """Each category's share of all ideas, and how many of its ideas improved."""
    sample = sample_of(tuple(run.cell.task for run in runs))
    totals = [len(run.ideas) for run in runs]
    figures = []
    for kind in KINDS:
        own = [[idea for idea in run.ideas if foremost(idea) == kind] for run in runs]
        counts = [len(ideas) for ideas in own]
        improved = [sum(idea.improved for idea in ideas) for ideas in own]
        figures.append(
            CategoryFigures(
                category=kind,
                ideas=sum(counts),
                share=sample.ratio("share", counts, totals, 100),
                improved=sample.ratio("improved", improved, counts, 100),
            )
        )
    return tuple(figures)


def category_shifts(
    pairs: Sequence[tuple[RunMeasures, RunMeasures]],
) -> tuple[CategoryShift, ...]:
    """How much more of its ideas the first gives to each category, on cells that both have."""
    sample = sample_of(tuple(first.cell.task for first, _ in pairs))
    return tuple(
        CategoryShift(category=kind, difference=_shift(sample, pairs, kind)) for kind in KINDS
    )


def _shift(
    sample: Sample, pairs: Sequence[tuple[RunMeasures, RunMeasures]], kind: Category | None
) -> Figure:
    firsts, seconds = ([pair[side] for pair in pairs] for side in (0, 1))
    return sample.difference_of_ratios(
        "shift", (_of(firsts, kind), _all(firsts)), (_of(seconds, kind), _all(seconds)), 100
    )


def _of(runs: Sequence[RunMeasures], kind: Category | None) -> list[int]:
    return [sum(foremost(idea) == kind for idea in run.ideas) for run in runs]


def _all(runs: Sequence[RunMeasures]) -> list[int]:
    return [len(run.ideas) for run in runs]
