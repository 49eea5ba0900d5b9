"""All cells of a plan on an engine: in order, each done once, what breaks tried again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import msgspec

from mle_ideator.benchmarks.leaderboards import Leaderboard
from mle_ideator.benchmarks.measures.values import Cell
from mle_ideator.benchmarks.runner.cell import CellEnd, Order, Told
from mle_ideator.benchmarks.runner.folders import run_folder
from mle_ideator.benchmarks.runner.plan import Plan
from mle_ideator.benchmarks.runner.progress import (
    Began,
    Done,
    Event,
    Failed,
    Opened,
    Retried,
    Stepped,
)
from mle_ideator.benchmarks.runner.states import CellState, Status, read_state, write_state
from mle_ideator.benchmarks.sources import leaderboard_of
from mle_ideator.config import RunConfig
from mle_ideator.errors import RuntimeFailure, UsageError
from mle_ideator.journal import read_journal
from mle_ideator.results import record_of
from mle_ideator.types import Value

BUSY_S = 2.0
"""Between looks at a cell that another process still runs: it ends soon, its runner is gone."""


class Engine(Protocol):
    """What runs cells, so many at a time."""

    @property
    def slots(self) -> int: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    def fitted(self, config: RunConfig, slot: int) -> RunConfig:
        """With this slot's share of the machine, where the config leaves that open."""
        ...

    def pid(self, slot: int) -> int | None:
        """Of the process that runs what is in the slot, as far as that is known here."""
        ...

    async def run(self, order: Order, slot: int, told: Told) -> CellEnd:
        """Run a cell. A cancellation waits until its session has ended in order."""
        ...

    def kill(self) -> None:
        """End everything at once; what was cancelled before stops waiting."""
        ...


class Patience(Value, frozen=True, kw_only=True):
    """How often a cell is tried when the runtime breaks, and how long is waited between."""

    attempts: int = 5
    first_wait_s: float = 5.0
    factor: float = 4.0
    longest_wait_s: float = 900.0

    def wait_s(self, broken: int) -> float:
        """After so many broken attempts."""
        return min(self.first_wait_s * self.factor ** (broken - 1), self.longest_wait_s)


USUAL = Patience()


async def run_matrix(
    plan: Plan,
    results: Path,
    engine: Engine,
    listen: Callable[[Event], None],
    patience: Patience = USUAL,
) -> None:
    """Run what is not done. `listen` is told of everything, of what was done before as well.

    Raises `UsageError` at the first cell that shows that the call was wrong. A cancellation ends
    the sessions in order, then is passed on.
    """
    matrix = _Matrix(plan, results, engine, listen, patience)
    try:
        await matrix.run()
    except BaseExceptionGroup as group:
        first = _first(group)
        if isinstance(first, OSError):
            raise RuntimeFailure(f"{results} can not be worked in: {first}") from first
        raise first from None


def open_cells(plan: Plan, results: Path) -> list[Cell]:
    """Those that are not noted as done."""
    return [cell for cell in plan.cells() if read_state(results, cell).status != "done"]


class _Matrix:
    def __init__(
        self,
        plan: Plan,
        results: Path,
        engine: Engine,
        listen: Callable[[Event], None],
        patience: Patience,
    ) -> None:
        self.plan = plan
        self.results = results
        self.engine = engine
        self.listen = listen
        self.patience = patience
        self.queue: asyncio.Queue[Cell | None] = asyncio.Queue()
        self.broken: dict[Cell, int] = {}
        self.busy: set[Cell] = set()
        self.open = 0

    async def run(self) -> None:
        for cell in self.plan.cells():
            state = read_state(self.results, cell)
            if state.status == "done":
                self.listen(self._done(state, before=True))
            else:
                self.queue.put_nowait(cell)
                self.open += 1
        if not self.open:
            return
        async with self.engine, asyncio.TaskGroup() as slots:
            self.listen(Opened(self.engine.slots))
            for slot in range(self.engine.slots):
                slots.create_task(self._work(slot))

    async def _work(self, slot: int) -> None:
        while (cell := await self.queue.get()) is not None:
            await self._attempt(cell, slot)

    async def _attempt(self, cell: Cell, slot: int) -> None:
        config = self.engine.fitted(self.plan.config_of(cell), slot)
        order = Order(cell=cell, config=config, results=str(self.results.resolve()))
        before = read_state(self.results, cell)
        state = msgspec.structs.replace(
            before, status="running", attempts=before.attempts + 1, pid=self.engine.pid(slot)
        )
        write_state(self.results, state)
        start = time.monotonic()
        self.listen(Began(cell, start))
        try:
            end = await self.engine.run(order, slot, lambda step: self.listen(Stepped(cell, step)))
        except asyncio.CancelledError:
            self._note(_after(state, start), "queued")
            raise
        self._settle(end, msgspec.structs.replace(_after(state, start), error=end.error))

    def _settle(self, end: CellEnd, state: CellState) -> None:
        if end.how == "refused":
            self._note(state, "queued")
            raise UsageError(end.error)
        if end.how == "done":
            self.listen(self._done(self._note(state, "done")))
            self._close()
        elif end.how == "busy":
            self._again(state, BUSY_S, told=state.cell in self.busy)
            self.busy.add(state.cell)
        else:
            broken = self.broken[state.cell] = self.broken.get(state.cell, 0) + 1
            if end.how == "failed" or broken >= self.patience.attempts:
                self._note(state, "failed")
                self.listen(Failed(state.cell, end.error))
                self._close()
            else:
                self._again(state, self.patience.wait_s(broken))

    def _note(self, state: CellState, status: Status) -> CellState:
        noted = msgspec.structs.replace(state, status=status)
        write_state(self.results, noted)
        return noted

    def _again(self, state: CellState, wait_s: float, *, told: bool = False) -> None:
        self._note(state, "queued")
        self.listen(Retried(state.cell, state.error, wait_s, told))
        asyncio.get_running_loop().call_later(wait_s, self.queue.put_nowait, state.cell)

    def _close(self) -> None:
        self.open -= 1
        if not self.open:
            for _ in range(self.engine.slots):
                self.queue.put_nowait(None)

    def _done(self, state: CellState, *, before: bool = False) -> Done:
        valid, rank = _worth(self.results, state.cell)
        return Done(state.cell, state.wall_s, valid, rank, before)


def _after(state: CellState, start: float) -> CellState:
    wall_s = state.wall_s + time.monotonic() - start
    return msgspec.structs.replace(state, pid=None, wall_s=wall_s)


def _worth(results: Path, cell: Cell) -> tuple[bool, float | None]:
    """Is its final solution valid, and its HumanRank where there is a leaderboard."""
    rerun = record_of(read_journal(run_folder(results, cell))).reproduced
    board = _leaderboard(cell.task)
    score = rerun.scores.private if rerun else None
    return rerun is not None, board.human_rank(score) if board else None


@cache
def _leaderboard(task: str) -> Leaderboard | None:
    return leaderboard_of(task)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner
