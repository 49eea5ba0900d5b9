"""Cells on a Ray cluster, or on one that is started here.

Ray only finds a place for a cell and tells when its process is gone; what is tried again is the
matrix's business. The results folder, the installed packages and the working directory have to be
the same on all nodes; what a model needs in its environment is set where `ray start` is called.
"""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from mle_ideator.benchmarks.runner.cell import CellEnd, Order, Told, run_cell
from mle_ideator.benchmarks.runner.ray_cluster import connected, imported
from mle_ideator.config import RunConfig
from mle_ideator.errors import UsageError
from mle_ideator.waiting import finish

_END_S = 60.0
"""What a session may take to end in order."""


class RayEngine:
    """So many cells at a time; without a number, as many as the cluster has cores for.

    A cell takes `threads` cores (1 where the config is silent), and one GPU if the config has any.
    """

    def __init__(self, address: str | None, slots: int | None, config: RunConfig) -> None:
        self._address = address
        self._slots = slots
        self._cores = config.threads or 1
        self._gpus = 1 if config.gpus else 0
        self._running: dict[int, Any] = {}

    @property
    def slots(self) -> int:
        return self._slots or 1

    async def __aenter__(self) -> Self:
        self._ray = connected(self._address)
        there = self._ray.cluster_resources()
        if self._slots is None:
            self._slots = max(1, int(there.get("CPU", 1)) // self._cores)
        if there.get("CPU", 0) < self._cores or there.get("GPU", 0) < self._gpus:
            self._ray.shutdown()
            raise UsageError(
                f"a cell needs {self._cores} cores and {self._gpus} GPUs on one node, but the "
                f"cluster has {there.get('CPU', 0):g} and {there.get('GPU', 0):g} in all; set "
                "threads and gpus to what there is."
            )
        self._remote = self._ray.remote(
            num_cpus=self._cores, num_gpus=self._gpus, max_retries=0, max_calls=0
        )(_run_there)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ray.shutdown()

    def fitted(self, config: RunConfig, slot: int) -> RunConfig:
        return msgspec.structs.replace(config, threads=self._cores)

    def pid(self, slot: int) -> int | None:
        return None

    async def run(self, order: Order, slot: int, told: Told) -> CellEnd:
        task = self._remote.remote(msgspec.json.encode(order), str(Path.cwd()))
        self._running[slot] = task
        ended = asyncio.wrap_future(task.future())
        try:
            return msgspec.json.decode(await asyncio.shield(ended), type=CellEnd)
        except asyncio.CancelledError:
            self._ray.cancel(task, recursive=False)
            await finish(_within(ended, _END_S))
            raise
        except self._ray.exceptions.RayError as error:
            lines = str(error).strip().splitlines() or [""]
            text = f"{lines[0]} {lines[-1]}" if len(lines) > 1 else lines[0]
            return CellEnd(how="lost", error=f"{type(error).__name__}: {text}")
        finally:
            del self._running[slot]

    def kill(self) -> None:
        for task in self._running.values():
            self._ray.cancel(task, force=True, recursive=False)


def _run_there(order: bytes, folder: str) -> bytes:
    """What a process of Ray's runs: one cell."""
    if Path(folder).is_dir():
        os.chdir(folder)  # classes and files of the caller's are found from there
    return msgspec.json.encode(asyncio.run(_run(msgspec.json.decode(order, type=Order))))


async def _run(order: Order) -> CellEnd:
    config = msgspec.structs.replace(order.config, gpus=_assigned(order.config.gpus))
    order = msgspec.structs.replace(order, config=config)
    cell = asyncio.create_task(run_cell(order, lambda step: None))
    # how Ray cancels; a handler of the loop's wakes it, too
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, cell.cancel)
    try:
        return await cell
    except asyncio.CancelledError:
        return CellEnd(how="broken", error="it was ended in order")


def _assigned(wanted: str | None) -> str | None:
    """The GPUs that Ray chose, where any are wanted."""
    if not wanted:
        return wanted
    return ",".join(imported().get_runtime_context().get_accelerator_ids().get("GPU", []))


async def _within(ended: asyncio.Future[bytes], seconds: float) -> None:
    await asyncio.wait({ended}, timeout=seconds)
    if ended.done() and not ended.cancelled():
        ended.exception()  # whatever it was, the caller is ending
