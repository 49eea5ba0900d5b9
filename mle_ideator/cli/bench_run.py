"""From the options of `bench run` to a finished matrix, with its console beside it."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TextIO

from mle_ideator.benchmarks.runner.bench import run_bench
from mle_ideator.benchmarks.runner.folders import LOGS
from mle_ideator.benchmarks.runner.local import LocalEngine
from mle_ideator.benchmarks.runner.matrix import Engine, Patience
from mle_ideator.benchmarks.runner.plan import Asked, Plan, common_config
from mle_ideator.benchmarks.runner.progress import Progress
from mle_ideator.cli.matrix import matrix_console
from mle_ideator.config import RunConfig, load_config
from mle_ideator.errors import UsageError
from mle_ideator.limits import seconds

INTERRUPTED = 130
_ENDING = "ending the runs in order; once more ends them at once"


def tasks_of(
    suite: str | None, data: Path | None, tasks: Sequence[str] | None
) -> tuple[str, ...] | None:
    """The specs of a suite and of tasks named besides; `None` if nothing is named."""
    if suite is None:
        return tuple(tasks) if tasks else None
    from mle_ideator.benchmarks.suites import suite_tasks

    return (*suite_tasks(suite, data).tasks, *(tasks or ()))


def seeds_of(count: int | None, seeds: Sequence[int] | None) -> tuple[int, ...] | None:
    if count and seeds:
        raise UsageError("say how many seeds (--seeds 3) or which ones (--seed 1), not both.")
    return tuple(seeds or range(count or 0)) or None


def config_of(
    file: Path | None,
    overrides: Sequence[str] | None,
    sandbox: str | None,
    steps: int | None,
    time: str | None,
) -> dict[str, Any] | None:
    """What all runs share; `None` if no option says anything of it."""
    if all(option is None for option in (file, overrides or None, sandbox, steps, time)):
        return None
    limit_s = None if time is None else seconds(time)
    named = {"sandbox": sandbox, "limits__steps": steps, "limits__time_s": limit_s}
    return common_config(load_config(RunConfig, file, overrides or (), **named))


def engine_for(
    name: str, address: str | None, workers: int | None, out: Path
) -> Callable[[Plan], Engine]:
    """What makes the engine, once the plan is known. Raises `UsageError`."""
    if name == "local":
        if address is not None:
            raise UsageError("--address is a Ray cluster's: say --engine ray.")
        return lambda plan: LocalEngine(workers or 1, out / LOGS)
    if name == "ray":
        from mle_ideator.benchmarks.runner.ray_engine import RayEngine

        return lambda plan: RayEngine(address, workers, plan.config_of(plan.cells()[0]))
    raise UsageError(f"unknown engine {name!r}; known: local, ray.")


def launch(
    out: Path,
    asked: Asked,
    engine_for: Callable[[Plan], Engine],
    patience: Patience,
    stream: TextIO | None = None,
) -> int:
    """Run the matrix, told on `stream` (stdout); the exit code: 0 if every run has come to its end,
    1 if some failed."""
    engines: list[Engine] = []

    def engine(plan: Plan) -> Engine:
        engines.append(engine_for(plan))
        return engines[-1]

    def kill() -> None:
        for made in engines:
            made.kill()

    with matrix_console(stream or sys.stdout) as console:
        work = run_bench(out.resolve(), asked, engine, console.take, patience)
        try:
            progress = asyncio.run(_interruptible(work, console.say, kill))
        except asyncio.CancelledError:
            progress = None
    console.finish(out, interrupted=progress is None)
    if progress is None:
        return INTERRUPTED
    return 1 if progress.failed else 0


async def _interruptible(
    work: Coroutine[Any, Any, Progress], say: Callable[[str], None], kill: Callable[[], None]
) -> Progress:
    """The first Ctrl-C, SIGTERM or SIGHUP ends the sessions in order, the second one at once."""
    task = asyncio.create_task(work)

    def stop() -> None:
        if task.cancelling():
            kill()
        else:
            say(_ENDING)
            task.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, stop)
    return await task
