"""One task at a time: what each contender's seeds came to, and how scores grew with the steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Literal

from mle_ideator.benchmarks.leaderboards import MEDALS
from mle_ideator.benchmarks.measures.curves import bests_by_validation
from mle_ideator.benchmarks.measures.figures import Point
from mle_ideator.benchmarks.measures.values import RunMeasures
from mle_ideator.benchmarks.reports.naming import plain, short_names
from mle_ideator.benchmarks.reports.values import OfTask, OnTask, ReportedRun
from mle_ideator.types import Score, Scores

Kind = Literal["private", "public", "validation"]
KINDS: tuple[Kind, ...] = ("private", "public", "validation")


def tasks_of(runs: Sequence[ReportedRun], names: Sequence[str]) -> tuple[OfTask, ...]:
    """Every task that has runs, in the order of its name; contenders as in `names`."""
    by_task: dict[str, list[ReportedRun]] = {}
    for run in runs:
        by_task.setdefault(run.measures.cell.task, []).append(run)
    called = short_names(by_task)
    return tuple(_of_task(task, called[task], by_task[task], names) for task in sorted(by_task))


def _of_task(task: str, called: str, runs: Sequence[ReportedRun], names: Sequence[str]) -> OfTask:
    known = next((run.measures for run in runs if run.measures.metric), runs[0].measures)
    kind = _kind_of(run.measures for run in runs)
    by_name = {name: [r.measures for r in runs if r.contender == name] for name in names}
    return OfTask(
        task=task,
        name=called,
        title=plain(known.title),
        metric=known.metric,
        kind=kind,
        baseline=_value(score_of(known.baseline, kind)),
        ranked=any(run.measures.ranked for run in runs),
        contenders=tuple(_on_task(name, own, kind) for name, own in by_name.items() if own),
    )


def _on_task(name: str, runs: Sequence[RunMeasures], kind: Kind) -> OnTask:
    final = [score for run in runs if run.valid and (score := score_of(run.scores, kind))]
    ranked = [run for run in runs if run.ranked]
    firsts = [run.steps_to_first_valid for run in runs if run.steps_to_first_valid is not None]
    values = [score.value for score in final]
    ends = (min(values), max(values)) if values else (None, None)
    rising = bool(final) and final[0].higher_is_better
    return OnTask(
        contender=name,
        runs=len(runs),
        valid=sum(run.valid for run in runs),
        flagged=sum(bool(run.flags) for run in runs),
        score=fmean(values) if values else None,
        worst=ends[0] if rising else ends[1],
        best=ends[1] if rising else ends[0],
        human_rank=fmean(run.human_rank for run in ranked) if ranked else None,
        medals={m: sum(run.medal == m for run in ranked) for m in MEDALS} if ranked else {},
        steps_to_first_valid=fmean(firsts) if firsts else None,
    )


def growth(runs: Sequence[RunMeasures], kind: Kind) -> tuple[Point, ...]:
    """Mean, lowest and highest score of the best solution so far, after each step.

    Over the runs that have one by then; the last point is that of the longest run.
    """
    bests = [_scored(run, kind) for run in runs]
    points = []
    for step in range(1, max((run.steps for run in runs), default=0) + 1):
        held = [[value for at, value in own if at <= step][-1:] for own in bests]
        values = [value for last in held for value in last]
        if values:
            points.append(Point(step, fmean(values), min(values), max(values)))
    return tuple(points)


def score_of(scores: Scores, kind: Kind) -> Score | None:
    score: Score | None = getattr(scores, kind)
    return score


def _scored(run: RunMeasures, kind: Kind) -> list[tuple[int, float]]:
    """Step and score of each solution that was the best by validation when it was made."""
    scores = [(moment.step, score_of(moment.scores, kind)) for moment in bests_by_validation(run)]
    return [(step, score.value) for step, score in scores if score]


def _kind_of(runs: Iterable[RunMeasures]) -> Kind:
    """Private scores where there are any, then public ones."""
    scores = [scores for run in runs for scores in (run.scores, *(m.scores for m in run.history))]
    return next((k for k in KINDS if any(score_of(s, k) for s in scores)), "private")


def _value(score: Score | None) -> float | None:
    return score.value if score else None
