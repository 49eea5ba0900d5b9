"""The figures of each contender, over its tasks and seeds."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

import msgspec

from mle_ideator.benchmarks.measures.curves import curves_of
from mle_ideator.benchmarks.measures.figures import (
    DEFINITIONS,
    ContenderFigures,
    Counts,
    Figure,
    Figures,
)
from mle_ideator.benchmarks.measures.ideas import category_figures
from mle_ideator.benchmarks.measures.paired import compare_all
from mle_ideator.benchmarks.measures.resampling import Sample, sample_of
from mle_ideator.benchmarks.measures.scoring import HUMAN_RANK, Scoring
from mle_ideator.benchmarks.measures.values import Cell, Contender, RunMeasures

Runs = Sequence[RunMeasures]


def figures_of(
    runs: Iterable[RunMeasures],
    *,
    expected: Iterable[Cell] = (),
    scoring: Scoring = HUMAN_RANK,
    min_delta: float = 0.0,
) -> Figures:
    """Everything over tasks and seeds. `expected` are the cells that were asked for.

    `min_delta`, in the scoring's unit, is the least difference that is no tie on a task.
    """
    ordered = in_order(runs)
    asked = set(expected)
    contenders = sorted({run.cell.contender for run in ordered} | {c.contender for c in asked})
    own = {c: [run for run in ordered if run.cell.contender == c] for c in contenders}
    return Figures(
        contenders=tuple(
            figures_of_contender(
                contender, own[contender], [c for c in asked if c.contender == contender], scoring
            )
            for contender in contenders
        ),
        comparisons=compare_all(ordered, scoring=scoring, min_delta=min_delta),
    )


def figures_of_contender(
    contender: Contender,
    runs: Iterable[RunMeasures],
    expected: Iterable[Cell] = (),
    scoring: Scoring = HUMAN_RANK,
) -> ContenderFigures:
    """All figures of one contender, from its runs."""
    ordered = in_order(runs)
    every = {
        figure.name: figure
        for figure in (*_scores(ordered, scoring), *_rates(ordered), *_amounts(ordered))
    }
    return ContenderFigures(
        contender=contender,
        counts=_counts(ordered, expected),
        scoring=scoring.name,
        figures=tuple(every[name] for name in DEFINITIONS),
        categories=category_figures(ordered),
        curves=curves_of(ordered, scoring),
    )


def in_order(runs: Iterable[RunMeasures]) -> list[RunMeasures]:
    """By task, then seed: so that sums do not depend on the order in which runs come."""
    return sorted(runs, key=lambda run: (run.cell, run.folder, msgspec.json.encode(run)))


def _sample(runs: Runs) -> Sample:
    return sample_of(tuple(run.cell.task for run in runs))


def _counts(runs: Runs, expected: Iterable[Cell]) -> Counts:
    tasks = Counter(run.cell.task for run in runs)
    there = {run.cell for run in runs}
    return Counts(
        runs=len(runs),
        tasks=len(tasks),
        seeds=max(tasks.values(), default=0),
        fewest_seeds=min(tasks.values(), default=0),
        missing=len(set(expected) - there),
        failed=sum(run.outcome == "failed" for run in runs),
        unended=sum(run.outcome is None for run in runs),
        invalid=sum(not run.valid for run in runs),
        flagged=sum(bool(run.flags) for run in runs),
        unranked=sum(not run.ranked for run in runs),
    )


def _scores(runs: Runs, scoring: Scoring) -> list[Figure]:
    scored = [run for run in runs if scoring.defined_on(run)]
    points = [scoring.of_run(run) or 0.0 for run in scored]
    ranked = [run for run in runs if run.ranked]
    ranks = [run.human_rank if run.valid else 0.0 for run in ranked]
    sample = _sample(scored)
    return [
        sample.mean("avg_at_k", points),
        sample.best("best_at_k", points),
        _sample(ranked).mean("human_rank", ranks),
    ]


def _rates(runs: Runs) -> list[Figure]:
    ranked = [run for run in runs if run.ranked]

    def medal(*kinds: str) -> Callable[[RunMeasures], bool]:
        return lambda run: run.valid and run.medal in kinds

    return [
        _rate("valid_rate", runs, lambda run: run.valid),
        _rate("above_median_rate", ranked, lambda run: run.valid and run.above_median),
        _rate("bronze_rate", ranked, medal("bronze")),
        _rate("silver_rate", ranked, medal("silver")),
        _rate("gold_rate", ranked, medal("gold")),
        _rate("any_medal_rate", ranked, medal("bronze", "silver", "gold")),
    ]


def _rate(name: str, runs: Runs, holds: Callable[[RunMeasures], bool]) -> Figure:
    """In percent of the runs, with MLE-bench's standard error over seeds."""
    percents = [100.0 * holds(run) for run in runs]
    by_seed: dict[int, list[float]] = defaultdict(list)
    for run, percent in zip(runs, percents, strict=True):
        by_seed[run.cell.seed].append(percent)
    error = _standard_error([statistics.fmean(of_seed) for of_seed in by_seed.values()])
    return msgspec.structs.replace(_sample(runs).mean(name, percents), standard_error=error)


def _standard_error(values: Sequence[float]) -> float | None:
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None


def _amounts(runs: Runs) -> list[Figure]:
    sample = _sample(runs)
    improving = [float(sum(idea.improved for idea in run.ideas)) for run in runs]

    def mean(name: str, of: Callable[[RunMeasures], float | None]) -> Figure:
        return sample.plain_mean(name, [of(run) for run in runs])

    return [
        mean("steps_to_first_valid", lambda run: run.steps_to_first_valid),
        mean("steps_to_first_valid_censored", _first_valid_or_budget),
        mean("seconds_to_first_valid", lambda run: run.seconds_to_first_valid),
        mean("help_requests", lambda run: run.help_requests),
        mean("improvements", lambda run: run.improvements),
        sample.ratio("improving_share", improving, [len(run.ideas) for run in runs], 100),
        mean("steps", lambda run: run.steps),
        mean("duration_s", lambda run: run.duration_s),
        mean("tokens", lambda run: run.usage.tokens),
        mean("ideator_tokens", lambda run: run.ideator_usage.tokens),
        mean("cost_usd", lambda run: run.usage.cost_usd),
    ]


def _first_valid_or_budget(run: RunMeasures) -> float:
    if run.steps_to_first_valid is not None:
        return run.steps_to_first_valid
    return run.steps if run.budget_steps is None else run.budget_steps
