"""Work on this machine, in worker processes that live on."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence

import psutil
from msgspec.structs import replace

from mle_ideator.rl.executor.admission import Capacity
from mle_ideator.rl.executor.cache import ResultCache
from mle_ideator.rl.executor.scheduling import Scheduler
from mle_ideator.rl.executor.values import Work
from mle_ideator.rl.executor.workers import Try, Worker

_GIB = 1024**3


class LocalExecutor(Scheduler):
    """An `Executor` with so many slots: cores that work may ask for, whether or not they are there.

    `memory_gib`: how much all that runs may ask for together; by default what this machine has.
    `gpus`: ids as in `CUDA_VISIBLE_DEVICES`, each handed to one work at a time.
    """

    def __init__(
        self,
        slots: int | None = None,
        *,
        cache: ResultCache | None = None,
        memory_gib: float | None = None,
        gpus: Sequence[str] = (),
        tries: int = 3,
        deaths: int = 2,
    ) -> None:
        super().__init__(cache=cache, tries=tries, deaths=deaths)
        self._slots = slots if slots is not None else len(os.sched_getaffinity(0))
        self._memory_gib = memory_gib or psutil.virtual_memory().total / _GIB
        self._gpus = sorted(gpus)
        self._free = list(self._gpus)
        self._idle: dict[str, list[Worker]] = {}
        """By the GPUs that they see: what CUDA was started with can not be changed."""
        self._workers = 0

    async def _open(self) -> Capacity:
        starts = [asyncio.create_task(self._started("")) for _ in range(self._slots)]
        await asyncio.wait(starts) if starts else None
        failed = [error for start in starts if (error := start.exception())]
        self._idle[""] = [start.result() for start in starts if not start.exception()]
        if failed:
            await self._close()
            raise failed[0]
        return Capacity(self._slots, self._memory_gib, len(self._gpus))

    async def _attempt(self, work: Work) -> Try:
        taken = [self._free.pop(0) for _ in range(work.resources.gpus)]
        try:
            worker = await self._worker(",".join(taken))
            try:
                tried = await worker.run(self._order(work))
            finally:
                self._put_back(worker, ",".join(taken))
        finally:
            self._free = sorted(self._free + taken)
        return replace(tried, node=socket.gethostname())

    async def _close(self) -> None:
        workers = [worker for idle in self._idle.values() for worker in idle]
        self._idle.clear()
        await asyncio.gather(*(self._killed(worker) for worker in workers))

    async def _worker(self, gpus: str) -> Worker:
        """One that sees these; another kind makes room for it."""
        idle = self._idle.setdefault(gpus, [])
        while idle:
            worker = idle.pop()
            if worker.lives:
                return worker
            await self._killed(worker)
        others = [workers for workers in self._idle.values() if workers]
        if others and self._workers >= self._slots + len(self._gpus):
            await self._killed(others[0].pop(0))
        return await self._started(gpus)

    async def _started(self, gpus: str) -> Worker:
        self._workers += 1
        try:
            return await Worker.start({"CUDA_VISIBLE_DEVICES": gpus})
        except BaseException:
            self._workers -= 1
            raise

    def _put_back(self, worker: Worker, gpus: str) -> None:
        if worker.fit:
            self._idle[gpus].append(worker)
        else:
            self._workers -= 1

    async def _killed(self, worker: Worker) -> None:
        self._workers -= 1
        await worker.kill()
