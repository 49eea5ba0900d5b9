"""Work on a Ray cluster, or on one that is started here.

Ray finds a place and tells when a process or a node is gone. In that place stands the same guarded
worker process as in `local`, as the child of a process of Ray's: so limits, crashes and the end of
all that was started are the same everywhere, and whatever ends Ray's process ends the work, too.
The installed packages have to be the same on all nodes. The cache's folder should be seen by all:
a node that does not see it leaves it to the driver to keep a result, when it has arrived.
"""

from __future__ import annotations

import asyncio
import sys
import weakref
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from mle_ideator.benchmarks.runner.ray_cluster import connected, imported
from mle_ideator.errors import RuntimeFailure
from mle_ideator.rl.executor.admission import Capacity
from mle_ideator.rl.executor.cache import ResultCache
from mle_ideator.rl.executor.frames import Order
from mle_ideator.rl.executor.inputs import Digests, Named, NodeFiles
from mle_ideator.rl.executor.scheduling import Scheduler
from mle_ideator.rl.executor.values import Work
from mle_ideator.rl.executor.workers import Try, Worker
from mle_ideator.waiting import finish

_GIB = 1024**3
_LOOK_S = 2.0
"""How often it looks which nodes there are."""
_END_S = 30.0
"""For a cancelled task to be over."""


@dataclass(eq=False)
class _Sent:
    """A file in the object store, as long as work needs it."""

    reference: Any


class RayExecutor(Scheduler):
    """An `Executor` on the cluster at `address` (`HOST:PORT`, `auto`); without one, Ray is started
    here, with `slots` cores (by default those that there are).

    On a cluster, `slots` bounds how many cores are used at a time.
    """

    def __init__(
        self,
        address: str | None = None,
        slots: int | None = None,
        *,
        cache: ResultCache | None = None,
        tries: int = 3,
        deaths: int = 2,
    ) -> None:
        super().__init__(cache=cache, tries=tries, deaths=deaths)
        self._address, self._slots = address, slots
        self._digests = Digests()
        self._sent: weakref.WeakValueDictionary[str, _Sent] = weakref.WeakValueDictionary()

    async def _open(self) -> Capacity:
        self._ray = await asyncio.to_thread(connected, self._address, self._slots)
        self._node = self._ray.get_runtime_context().get_node_id()
        self._remote = self._ray.remote(max_retries=0)(_run_there)
        self._watch = asyncio.create_task(self._watched())
        return self._capacity()

    async def _close(self) -> None:
        self._watch.cancel()
        await asyncio.wait({self._watch})
        await asyncio.to_thread(self._ray.shutdown)

    async def _attempt(self, work: Work) -> Try:
        sent = await asyncio.to_thread(self._send, work.inputs)
        asked = work.resources
        place = self._remote.options(
            num_cpus=asked.cores,
            num_gpus=asked.gpus,
            memory=int(asked.memory_gib * _GIB) if asked.memory_gib else None,
        )
        # in lists, references are not fetched before somebody asks for them
        files = [(msgspec.msgpack.encode(file), [own.reference]) for file, own in sent]
        order = msgspec.msgpack.encode(self._order(work))
        tried = await self._answer(place.remote(order, files, self._node, sys.path))
        self._keep(work, tried)
        return tried

    async def _answer(self, task: Any) -> Try:
        ended = asyncio.wrap_future(task.future())
        try:
            return msgspec.msgpack.decode(await asyncio.shield(ended), type=Try)
        except asyncio.CancelledError:
            self._ray.cancel(task, force=True, recursive=False)
            await finish(_over(ended))
            raise
        except self._ray.exceptions.RayError as error:
            return Try(status="infra_error", detail=_described(error))

    def _keep(self, work: Work, tried: Try) -> None:
        """What came from where the cache can not be seen."""
        wanted = tried.status == "ok" and tried.final and self._known(work) is None
        if wanted and self._cache and work.identity:
            with suppress(OSError):
                self._cache.put(work.identity, tried.value)

    def _send(self, inputs: Iterable[str]) -> list[tuple[Named, _Sent]]:
        return [(file, self._sent_file(file)) for file in map(self._digests.named, inputs)]

    def _sent_file(self, file: Named) -> _Sent:
        sent = self._sent.get(file.digest)
        if sent is None:
            sent = _Sent(self._ray.put(Path(file.path).read_bytes()))
            self._sent[file.digest] = sent
        return sent

    def _capacity(self) -> Capacity:
        there = self._ray.cluster_resources()
        cores = int(there.get("CPU", 0))
        return Capacity(
            min(cores, self._slots) if self._slots else cores,
            there.get("memory", 0.0) / _GIB,
            int(there.get("GPU", 0)),
        )

    async def _watched(self) -> None:
        """Nodes come and go."""
        while True:
            await asyncio.sleep(_LOOK_S)
            with suppress(self._ray.exceptions.RayError):
                self._resize(await asyncio.to_thread(self._capacity))


async def _over(ended: asyncio.Future[bytes]) -> None:
    await asyncio.wait({ended}, timeout=_END_S)
    if ended.done() and not ended.cancelled():
        ended.exception()  # whatever it was, nobody waits for it


def _described(error: Exception) -> str:
    """Ray says much; the first and the last line tell what and why."""
    lines = str(error).strip().splitlines() or [""]
    text = f"{lines[0]} {lines[-1]}" if len(lines) > 1 else lines[0]
    return f"{type(error).__name__}: {text}"


# ---------------------------------------------------------------------- in a process of Ray's


class _Place:
    """What one process of Ray's keeps from work to work: a loop, and a worker."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.worker: Worker | None = None
        self.gpus = ""

    def run(self, order: Order, gpus: str) -> Try:
        return self.loop.run_until_complete(self._run(order, gpus))

    async def _run(self, order: Order, gpus: str) -> Try:
        worker = self.worker
        if worker and (gpus != self.gpus or not worker.fit or not worker.lives):
            await worker.kill()
            worker = None
        if worker is None:
            worker = await Worker.start({"CUDA_VISIBLE_DEVICES": gpus})
        self.worker, self.gpus = worker, gpus
        return await worker.run(order)


_place: _Place | None = None


def _run_there(
    packed: bytes, files: Sequence[tuple[bytes, list[Any]]], driver: str, import_path: list[str]
) -> bytes:
    """What a process of Ray's runs: one work."""
    global _place
    _place = _place or _Place()
    context = imported().get_runtime_context()
    sys.path += [path for path in import_path if path not in sys.path]
    order = msgspec.msgpack.decode(packed, type=Order)
    gpus = ",".join(context.get_accelerator_ids().get("GPU", []))
    node = context.get_node_id()
    with ExitStack() as held:
        try:
            paths = [_here(file, refs[0], held, node == driver) for file, refs in files]
            tried = _place.run(replace(order, inputs=tuple(paths)), gpus)
        except (RuntimeFailure, OSError) as error:
            tried = Try(status="infra_error", detail=f"{type(error).__name__}: {error}")
    return msgspec.msgpack.encode(replace(tried, node=node))


def _here(packed: bytes, reference: Any, held: ExitStack, at_home: bool) -> str:
    """Where a file is on this node, for as long as it is held."""
    file = msgspec.msgpack.decode(packed, type=Named)
    if at_home:
        return file.path
    fetch = partial(imported().get, reference)
    return str(held.enter_context(NodeFiles().held(file, fetch)))
