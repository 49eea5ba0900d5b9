"""What executors share: the order in which work starts, merging, the cache, retries, counters."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Self

from mle_ideator.errors import UsageError
from mle_ideator.rl.executor.admission import Budget, Capacity, Queue
from mle_ideator.rl.executor.cache import ResultCache
from mle_ideator.rl.executor.frames import Order
from mle_ideator.rl.executor.values import Counters, Done, Resources, Work, require_sound
from mle_ideator.rl.executor.workers import Try
from mle_ideator.waiting import finish

_PATIENCE_S = 60.0
"""How long smaller work may overtake larger."""
_PAUSE_S = 0.2
"""After the first broken try; after the second twice that, and so on."""


@dataclass(eq=False)
class Job:
    """A work that was not answered yet, and all that wait for it."""

    work: Work
    since: float
    futures: set[asyncio.Future[Done]] = field(default_factory=set)
    task: asyncio.Task[None] | None = None
    """Set while it runs."""
    tries: int = 0
    deaths: int = 0

    @property
    def asks(self) -> Resources:
        return self.work.resources


class Scheduler(ABC):
    """An executor but for how one try is made.

    `tries`: executions of one work at most, where the runtime breaks. `deaths`: of those, how many
    may end their worker process. `cache`: folder of results that are kept.
    """

    def __init__(self, *, cache: ResultCache | None, tries: int, deaths: int) -> None:
        if tries < 1 or deaths < 1:
            raise UsageError(f"tries={tries} and deaths={deaths} must be at least 1.")
        self._cache, self._tries, self._deaths = cache, tries, deaths
        self._budget = Budget(Capacity(0, 0.0, 0))
        self._most = self._budget.capacity
        self._queue: Queue[Job] = Queue(_PATIENCE_S)
        self._running: set[Job] = set()
        self._by_identity: dict[str, Job] = {}
        self._by_future: dict[asyncio.Future[Done], Job] = {}
        self._ended: Counter[str] = Counter()
        self._hits = self._merged = self._retried = 0
        self._is_open = False

    # ------------------------------------------------------------------ for who writes one

    @abstractmethod
    async def _open(self) -> Capacity:
        """Get ready; says how much there is."""

    @abstractmethod
    async def _attempt(self, work: Work) -> Try:
        """Execute it once. Cancelled, it kills. Raises `RuntimeFailure` if nothing was begun."""

    @abstractmethod
    async def _close(self) -> None:
        """Let go of everything. Nothing runs any more."""

    def _order(self, work: Work) -> Order:
        return Order(
            function=work.function,
            argument=work.argument,
            inputs=work.inputs,
            limit_s=work.limit_s,
            identity=work.identity,
            cache=str(self._cache.folder) if self._cache else None,
        )

    def _resize(self, capacity: Capacity) -> None:
        """There is more now, or less."""
        self._budget.capacity = capacity
        self._most = self._most.joined(capacity)
        self._start_what_fits()

    # ------------------------------------------------------------------ the seam

    async def __aenter__(self) -> Self:
        if self._cache:
            try:
                self._cache.prepare()
            except OSError as error:
                raise UsageError(f"the cache {self._cache.folder} is unusable: {error}") from error
        self._resize(await self._open())
        self._is_open = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await finish(self._end())

    def submit(self, work: Work) -> asyncio.Future[Done]:
        require_sound(work)
        self._require_possible(work)
        future: asyncio.Future[Done] = asyncio.get_running_loop().create_future()
        if (job := self._by_identity.get(work.identity or "")) is not None:
            self._merged += 1
        elif (known := self._known(work)) is not None:
            self._hits += 1
            future.set_result(Done(status="ok", value=known, cached=True))
            return future
        else:
            job = self._enqueued(work)
        job.futures.add(future)
        self._by_future[future] = job
        future.add_done_callback(partial(self._left, job))
        self._start_what_fits()
        return future

    async def cancel(self, future: asyncio.Future[Done]) -> None:
        job = self._by_future.get(future)
        future.cancel()
        await asyncio.sleep(0)  # what a cancelled future calls is called by the loop
        if job and job.task and not job.futures:
            await asyncio.wait({job.task})

    def counters(self) -> Counters:
        failed = {status: number for status, number in self._ended.items() if status != "ok"}
        return Counters(
            waiting=len(self._queue),
            running=len(self._running),
            done=self._ended["ok"],
            failed=failed,
            cache_hits=self._hits,
            merged=self._merged,
            retried=self._retried,
        )

    # ------------------------------------------------------------------ from queue to answer

    def _require_possible(self, work: Work) -> None:
        if not self._is_open:
            raise UsageError("this executor is not open; use it as an async context manager.")
        if not self._most.holds(work.resources):
            raise UsageError(f"a work asks for {work.resources}, but there is {self._most} in all.")

    def _known(self, work: Work) -> bytes | None:
        return self._cache.get(work.identity) if self._cache and work.identity else None

    def _enqueued(self, work: Work) -> Job:
        job = Job(work, time.monotonic())
        if work.identity:
            self._by_identity[work.identity] = job
        self._queue.add(job)
        return job

    def _start_what_fits(self) -> None:
        while self._is_open and (job := self._queue.next(self._budget, time.monotonic())):
            self._running.add(job)
            job.task = asyncio.create_task(self._run(job))

    def _left(self, job: Job, future: asyncio.Future[Done]) -> None:
        """Somebody was answered, or waits no more; what nobody waits for is not done."""
        job.futures.discard(future)
        self._by_future.pop(future, None)
        if job.futures or not future.cancelled():
            return
        self._forget(job)
        if job.task:
            job.task.cancel()
        else:
            self._queue.remove(job)

    def _forget(self, job: Job) -> None:
        """Nobody can join it any more."""
        identity = job.work.identity or ""
        if self._by_identity.get(identity) is job:
            del self._by_identity[identity]

    async def _run(self, job: Job) -> None:
        try:
            done = await self._done(job)
        except asyncio.CancelledError:
            return
        finally:
            self._forget(job)
            self._running.discard(job)
            self._budget.give_back(job.asks)
            self._start_what_fits()
        self._ended[done.status] += 1
        for future in job.futures:
            if not future.done():
                future.set_result(done)

    async def _done(self, job: Job) -> Done:
        while True:
            tried = await self._tried(job)
            again = self._again(job, tried)
            if not again:
                break
            self._retried += 1
            await asyncio.sleep(_PAUSE_S * job.tries)
        if tried.cached:
            self._hits += 1
        return Done(
            status=tried.status,
            value=tried.value,
            detail=tried.detail,
            seconds=tried.seconds,
            waited_s=max(0.0, time.monotonic() - job.since - tried.seconds),
            tries=job.tries,
            cached=tried.cached,
            node=tried.node,
        )

    async def _tried(self, job: Job) -> Try:
        """One try. What was finished before it broke is not done again."""
        job.tries += 1
        try:
            tried = await self._attempt(job.work)
        except UsageError as error:
            tried = Try(status="error", detail=f"{type(error).__name__}: {error}")
        except Exception as error:  # whatever it is: nobody may wait for ever
            tried = Try(status="infra_error", detail=f"{type(error).__name__}: {error}")
        if tried.status == "died":
            job.deaths += 1
        if tried.status in ("timeout", "died", "infra_error"):
            known = self._known(job.work)
            if known is not None:
                return Try(status="ok", value=known, cached=True, node=tried.node)
        return tried

    def _again(self, job: Job, tried: Try) -> bool:
        if tried.status == "died":
            return job.deaths < self._deaths and job.tries < self._tries
        return tried.status == "infra_error" and job.tries < self._tries

    async def _end(self) -> None:
        self._is_open = False
        tasks = {job.task for job in self._running if job.task}
        for future in list(self._by_future):
            future.cancel()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._close()
