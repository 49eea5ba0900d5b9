"""Cells in worker processes of this machine.

Each worker keeps its fork server from cell to cell, so that kernels start warm. One that dies loses
the cell that it had, and another takes its place.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from mle_ideator.benchmarks.runner.cell import CellEnd, Order, Told
from mle_ideator.benchmarks.runner.worker import LONGEST_LINE, Reply
from mle_ideator.config import RunConfig
from mle_ideator.waiting import finish

_MODULE = "mle_ideator.benchmarks.runner.worker"
_END_S = 60.0
"""What a session may take to end in order: a solution that is being graded is not lost."""


class LocalEngine:
    """So many workers; their output goes to `logs/worker-N.txt`."""

    def __init__(self, workers: int, logs: Path) -> None:
        self._workers: list[_Worker | None] = [None] * workers
        self._logs = logs

    @property
    def slots(self) -> int:
        return len(self._workers)

    async def __aenter__(self) -> Self:
        self._logs.mkdir(parents=True, exist_ok=True)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await finish(self._stop_all())

    def fitted(self, config: RunConfig, slot: int) -> RunConfig:
        cores = len(os.sched_getaffinity(0))
        return msgspec.structs.replace(
            config,
            threads=config.threads or max(1, cores // self.slots),
            gpus=share_of(config.gpus, slot, self.slots),
        )

    def pid(self, slot: int) -> int | None:
        worker = self._workers[slot]
        return worker.pid if worker and worker.is_alive else None

    async def run(self, order: Order, slot: int, told: Told) -> CellEnd:
        worker = self._workers[slot]
        if worker is None or not worker.is_alive:
            worker = self._workers[slot] = await self._start(slot, order.config.gpus)
        try:
            return await worker.run(order, told)
        except asyncio.CancelledError:
            await finish(worker.stop())
            raise

    def kill(self) -> None:
        for worker in self._workers:
            if worker:
                worker.kill()

    async def _stop_all(self) -> None:
        await asyncio.gather(*(worker.stop() for worker in self._workers if worker))

    async def _start(self, slot: int, gpus: str | None) -> _Worker:
        log = self._logs / f"worker-{slot + 1}.txt"
        with log.open("ab") as errors:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", _MODULE),
                stdin=PIPE,
                stdout=PIPE,
                stderr=errors,
                env=_environment(gpus),
                limit=LONGEST_LINE,
                start_new_session=True,  # a Ctrl-C at the terminal reaches the runner only
            )
        return _Worker(process, log)


class _Worker:
    def __init__(self, process: Process, log: Path) -> None:
        assert process.stdin  # noqa: S101 - a pipe
        assert process.stdout  # noqa: S101 - a pipe
        self._process, self._log = process, log
        self._orders, self._replies = process.stdin, process.stdout

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    async def run(self, order: Order, told: Told) -> CellEnd:
        with suppress(ConnectionError):  # its replies end as well, which says why
            self._orders.write(msgspec.json.encode(order) + b"\n")
            await self._orders.drain()
        while line := await self._replies.readline():
            if not line.endswith(b"\n"):
                break
            reply = msgspec.json.decode(line, type=Reply)
            if reply.step is not None:
                told(reply.step)
            if reply.end:
                return reply.end
        self.kill()
        code = await self._process.wait()
        return CellEnd(how="lost", error=f"the worker {_ended_with(code)}; see {self._log}")

    async def stop(self) -> None:
        """Let its session end in order, and wait for that."""
        self._orders.close()
        try:
            async with asyncio.timeout(_END_S):
                while await self._replies.read(LONGEST_LINE):
                    pass
                await self._process.wait()
        except TimeoutError:
            self.kill()
            await self._process.wait()

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


def share_of(gpus: str | None, slot: int, slots: int) -> str | None:
    """The GPUs of one slot: dealt out in turn; where there are fewer than slots, shared."""
    ids = [word.strip() for word in (gpus or "").split(",") if word.strip()]
    if not ids or ids == ["all"]:
        return gpus
    return ",".join(ids[slot::slots] or [ids[slot % len(ids)]])


def _environment(gpus: str | None) -> dict[str, str]:
    """What models in the worker see is what its sandboxes get."""
    if gpus is None or gpus == "all":
        return dict(os.environ)
    return {**os.environ, "CUDA_VISIBLE_DEVICES": gpus}


def _ended_with(code: int) -> str:
    if code < 0:
        return f"was killed ({signal.Signals(-code).name})"
    return f"ended with code {code}"
