"""A whole benchmark in one results folder: begun, or gone on with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mle_ideator import __version__
from mle_ideator.benchmarks.runner.checks import check
from mle_ideator.benchmarks.runner.folders import LOCK, PLAN
from mle_ideator.benchmarks.runner.matrix import USUAL, Engine, Patience, open_cells, run_matrix
from mle_ideator.benchmarks.runner.plan import Asked, Plan, planned, write_plan
from mle_ideator.benchmarks.runner.progress import Building, Event, Planned, Progress
from mle_ideator.benchmarks.runner.states import results_held
from mle_ideator.errors import UsageError


async def run_bench(
    results: Path,
    asked: Asked,
    engine_for: Callable[[Plan], Engine],
    listen: Callable[[Event], None] = lambda event: None,
    patience: Patience = USUAL,
) -> Progress:
    """Run all that is not done of a plan that is new, as it was, or has grown.

    Raises `UsageError` before anything runs, where that can be known: another runner is at work
    there, another plan, agents, sandbox or tasks that can not be used. Nothing then has changed.
    A cancellation ends the sessions in order.
    """
    progress = Progress()

    def take(event: Event) -> None:
        progress.take(event)
        listen(event)

    with _held(results):
        plan = planned(results, asked)
        take(Planned(tuple(plan.cells()), "" if plan.version == __version__ else plan.version))
        await check(plan, open_cells(plan, results), lambda task: take(Building(task)))
        write_plan(results, plan)
        await run_matrix(plan, results, engine_for(plan), take, patience)
    return progress


@contextmanager
def _held(results: Path) -> Iterator[None]:
    """Be alone in the folder, made if need be; a call that was wrong leaves no new one."""
    if results.is_dir() and not (results / PLAN).exists() and _others(results):
        raise UsageError(
            f"--out {results} is not empty and holds no results of `bench run`; name a new folder."
        )
    try:
        new = not results.exists()
        results.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {results} can not be made: {error.strerror}.") from error
    with results_held(results):
        try:
            yield
        finally:
            if new and not (results / PLAN).exists():
                (results / LOCK).unlink()
                results.rmdir()


def _others(results: Path) -> list[str]:
    return [path.name for path in results.iterdir() if path.name != LOCK]
