"""Runs in numbers: one from its folder alone, as its journal says all, or all of a folder."""

from __future__ import annotations

import logging
import multiprocessing
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from mle_ideator.benchmarks.fair_play import flags_of
from mle_ideator.benchmarks.leaderboards import Leaderboard
from mle_ideator.benchmarks.measures.categories import categories_of
from mle_ideator.benchmarks.measures.finding import Found, cell_of, found_in, given_up_in
from mle_ideator.benchmarks.measures.remembered import key_of, recall, remember
from mle_ideator.benchmarks.measures.values import Cell, Moment, RunMeasures, TriedIdea
from mle_ideator.benchmarks.runner.states import read_state
from mle_ideator.benchmarks.sources import leaderboard_of
from mle_ideator.errors import TaskError, UsageError
from mle_ideator.journal import Event, Solved, read_journal
from mle_ideator.results import Record, record_of
from mle_ideator.types import Scores, Usage

log = logging.getLogger(__name__)

MANY = 200
"""From so many runs on, further processes help: starting them takes a second."""


def measure_run(
    folder: Path, cell: Cell | None, board: Leaderboard | None, root: Path
) -> RunMeasures:
    """The measures of a run, however it ended or if it has not yet.

    `cell` is what the run was made for; without it, what its config says. `root` is what `folder`
    is named relative to, where it lies there. Raises `UsageError` if the folder holds no journal
    that can be read.
    """
    events = read_journal(folder)
    record = record_of(events)
    task, rerun = record.started.task, record.reproduced
    history = tuple(_moments(events, board))
    limits = record.started.config.get("limits", {})
    scores = rerun.scores if rerun else Scores()
    return RunMeasures(
        cell=cell or cell_of(record.started.config),
        folder=named(folder, root),
        outcome=record.ended.outcome if record.ended else None,
        detail=record.ended.detail if record.ended else "it has not ended",
        valid=rerun is not None,
        scores=scores,
        ranked=board is not None,
        human_rank=board.human_rank(scores.private) if board else 0.0,
        medal=board.medal(scores.private) if board else None,
        above_median=board is not None and board.above_median(scores.private),
        steps=len(record.steps),
        budget_steps=limits.get("steps"),
        steps_to_first_valid=history[0].step if history else None,
        seconds_to_first_valid=history[0].at_s if history else None,
        duration_s=record.at_s,
        budget_s=limits.get("time_s"),
        help_requests=record.help_requests,
        improvements=len(record.improved),
        usage=record.implementer_usage + record.ideator_usage,
        ideator_usage=record.ideator_usage,
        history=history,
        ideas=_ideas(record),
        flags=flags_of(record.final.code, task) if record.final else (),
        title=task.title,
        metric=task.metric,
        baseline=task.baseline,
        min_delta=task.min_delta,
    )


def without_session(run: Found, detail: str, board: Leaderboard | None, root: Path) -> RunMeasures:
    """A run of which no session can be read: it never began, or its journal is damaged."""
    return RunMeasures(
        cell=run.cell,
        folder=named(run.folder, root),
        outcome="failed",
        detail=detail,
        valid=False,
        scores=Scores(),
        ranked=board is not None,
        human_rank=0.0,
        medal=None,
        above_median=False,
        steps=0,
        steps_to_first_valid=None,
        seconds_to_first_valid=None,
        duration_s=0.0,
        help_requests=0,
        improvements=0,
        usage=Usage(),
        history=(),
        ideas=(),
    )


def named(folder: Path, root: Path) -> str:
    """How reports name a run: relative to the results where it lies in them."""
    return str(folder.relative_to(root)) if folder.is_relative_to(root) else str(folder)


def _moments(events: Iterable[Event], board: Leaderboard | None) -> Iterable[Moment]:
    for event in events:
        if isinstance(event, Solved):
            scores = event.solution.scores
            yield Moment(
                step=event.solution.step,
                at_s=event.at_s,
                scores=scores,
                best=event.best,
                human_rank=board.human_rank(scores.private) if board else 0.0,
                medal=board.medal(scores.private) if board else None,
            )


def _ideas(record: Record) -> tuple[TriedIdea, ...]:
    improved = set(record.improved)
    return tuple(
        TriedIdea(step=step, categories=categories_of(idea), improved=step in improved)
        for step, idea in record.ideas
    )


def measure_all(root: Path) -> list[RunMeasures]:
    """The measures of every run in a folder: results of `bench run`, or any folder with runs in it.

    Runs that failed or have not ended are among them, and cells that the runner gave up before a
    session began. In the order of their cells.
    """
    root = root.resolve()
    found = list(found_in(root))
    given_up = list(given_up_in(root, {run.cell for run in found}))
    boards = {task: _board(task) for task in sorted({run.cell.task for run in [*found, *given_up]})}
    keys = [key_of(run.folder, run.cell, boards[run.cell.task]) for run in found]
    known = recall(root)
    unknown = [run for run, key in zip(found, keys, strict=True) if key not in known]
    fresh = iter(_measured(unknown, boards, root))
    runs = [known.get(key) or next(fresh) for key in keys]
    if unknown:
        remember(root, dict(zip(keys, runs, strict=True)))
    runs += [
        without_session(run, _why(root, run.cell), boards[run.cell.task], root) for run in given_up
    ]
    return sorted(runs, key=lambda run: (run.cell, run.folder))


def _why(root: Path, cell: Cell) -> str:
    return read_state(root, cell).error or "no session began"


def _board(task: str) -> Leaderboard | None:
    try:
        return leaderboard_of(task)
    except TaskError as error:
        log.warning("the leaderboard of %s is not there, its runs are not ranked: %s", task, error)
        return None


def _measured(
    runs: Sequence[Found], boards: dict[str, Leaderboard | None], root: Path
) -> Iterable[RunMeasures]:
    measure = partial(_measure, root=root)
    ordered = [(run, boards[run.cell.task]) for run in runs]
    if len(runs) < MANY:
        yield from map(measure, ordered)
        return
    # Not forked: the caller may have threads, and a fork would copy locks that they hold.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(os.cpu_count() or 1, 8), mp_context=context) as pool:
        yield from pool.map(measure, ordered, chunksize=16)


def _measure(run: tuple[Found, Leaderboard | None], root: Path) -> RunMeasures:
    found, board = run
    try:
        return measure_run(found.folder, found.cell, board, root)
    except UsageError as error:
        return without_session(found, str(error), board, root)
