"""One cell of the matrix: a session in its own folder, begun, gone on with, or found ended.

Whose fault an error is decides what follows:

    broken    the runtime, a server, the disk: the cell is tried again, a few times
    lost      the worker that had it is gone: tried again, as above
    busy      another process, left over, still runs it: tried again when that has ended
    failed    what was recorded can not be gone on with: trying again would not help
    refused   the call was wrong: the whole matrix ends at once
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from mle_ideator.benchmarks.measures.values import Cell
from mle_ideator.benchmarks.runner.folders import run_folder
from mle_ideator.benchmarks.runner.states import cell_held
from mle_ideator.benchmarks.running import (
    has_ended,
    run_to_end,
    set_up,
    set_up_again,
    write_all_results,
)
from mle_ideator.config import RunConfig
from mle_ideator.errors import MleIdeatorError, UsageError
from mle_ideator.journal import FILE, Event, Stepped, StillWritten, read_journal
from mle_ideator.results import record_of
from mle_ideator.types import Value

Told = Callable[[int], None]
"""Is told the number of each step that was taken."""


class Order(Value, frozen=True, kw_only=True):
    """A cell to be run."""

    cell: Cell
    config: RunConfig
    results: str


How = Literal["done", "broken", "lost", "busy", "failed", "refused"]


class CellEnd(Value, frozen=True, kw_only=True):
    """What came of one attempt."""

    how: How
    error: str = ""
    """One line."""
    seconds: float = 0.0


async def run_cell(order: Order, told: Told) -> CellEnd:
    """Run the session of a cell to its end, from wherever it stands.

    Errors are told, not raised. Only a cancellation is: the journal then says `interrupted`.
    """
    start = time.monotonic()
    results = Path(order.results)
    folder = run_folder(results, order.cell)
    with cell_held(results, order.cell) as free:
        if not free:
            return CellEnd(how="busy", error="another process still runs it")
        again = _has_begun(folder)
        how: How
        try:
            await (_go_on if again else _begin)(order.config, folder, told)
            how, line = "done", ""
        except StillWritten as error:
            how, line = "busy", str(error)
        except UsageError as error:
            how, line = ("failed" if again else "refused"), str(error)
        except Exception as error:
            how, line = "broken", _line(error)
    return CellEnd(how=how, error=" ".join(line.split()), seconds=time.monotonic() - start)


def _has_begun(folder: Path) -> bool:
    """Has its journal a first event? One that broke before that begins anew."""
    try:
        return b"\n" in (folder / FILE).read_bytes()
    except OSError:
        return False


async def _begin(config: RunConfig, folder: Path, told: Told) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    await run_to_end(set_up(config, folder), [_steps_to(told)])


async def _go_on(config: RunConfig, folder: Path, told: Told) -> None:
    if has_ended(record_of(read_journal(folder))):
        write_all_results(folder)  # it may have been killed before they were
    else:
        setup = set_up_again(folder, {"threads": config.threads, "gpus": config.gpus})
        await run_to_end(setup, [_steps_to(told)], again=True)


def _steps_to(told: Told) -> Callable[[Event], None]:
    def listen(event: Event) -> None:
        if isinstance(event, Stepped):
            told(event.step.number)

    return listen


def _line(error: Exception) -> str:
    if isinstance(error, MleIdeatorError):
        return str(error)
    return f"{type(error).__name__}: {error}"
