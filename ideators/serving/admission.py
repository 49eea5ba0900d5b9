"""Who may come in, and who has to wait: a bounded number of places, and turns among them.

What finds no place is told so at once; what has one is answered. A request holds its place from
before its body is read until its answer is there, so that bodies in memory are bounded as well; it
holds a turn only while the ideator works on it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from mle_ideator.ideators.serving.answers import Refused

_SMOOTHING = 0.2
_SOONEST_S, _LATEST_S = 1.0, 60.0


class Places:
    """At most `concurrency` requests at work, and `queue` more that wait for it."""

    def __init__(
        self,
        concurrency: int,
        queue: int,
        deadline_s: float,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.draining = False
        self.admitted = 0
        self._concurrency = concurrency
        self._most = concurrency + queue
        self._deadline_s = deadline_s
        self._turns = asyncio.Semaphore(concurrency)
        self._now = now
        self._begun: dict[object, float] = {}
        self._turn_s: float | None = None
        self._empty = asyncio.Event()
        self._over = asyncio.Event()

    @property
    def at_work(self) -> int:
        return len(self._begun)

    @property
    def waiting(self) -> int:
        return self.admitted - self.at_work

    @contextmanager
    def place(self) -> Iterator[None]:
        """A place, held inside. Raises `Refused` where there is none."""
        if self.draining:
            raise Refused(503, "draining", "this server is about to stop.", retry_after_s=5.0)
        if self.admitted >= self._most:
            message = f"all {self._most} places are taken; try again later."
            raise Refused(503, "busy", message, retry_after_s=self.retry_after_s)
        self.admitted += 1
        try:
            yield
        finally:
            self.admitted -= 1
            if self.draining and not self.admitted:
                self._empty.set()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """A turn, held inside. Raises `Refused` if it does not come before the deadline."""
        try:
            async with asyncio.timeout(self._deadline_s):
                await self._turns.acquire()
        except TimeoutError as error:
            message = f"its turn did not come within {self._deadline_s:g} s; try again later."
            raise Refused(503, "late", message, retry_after_s=self.retry_after_s) from error
        turn = object()
        begun = self._begun[turn] = self._now()
        try:
            yield
            self._measure(self._now() - begun)  # one that was broken off tells nothing
        finally:
            del self._begun[turn]
            self._turns.release()

    def _measure(self, turn_s: float) -> None:
        if self._turn_s is None:
            self._turn_s = turn_s
        self._turn_s += (turn_s - self._turn_s) * _SMOOTHING

    @property
    def retry_after_s(self) -> float:
        """When those that are in will probably be through."""
        rounds = max(1.0, self.admitted / self._concurrency)
        oldest_s = self._now() - min(self._begun.values(), default=self._now())
        turn_s = max(self._turn_s or 0.0, oldest_s)
        return min(_LATEST_S, max(_SOONEST_S, turn_s * rounds))

    # -------------------------------------------------------------------------------- the end

    async def drain(self, grace_s: float) -> int:
        """Let nobody in, wait for those that are; how many were still in when time was up."""
        self.draining = True
        if not self.admitted:
            return 0
        try:
            async with asyncio.timeout(grace_s):
                await self._empty.wait()
        except TimeoutError:
            pass
        cut = self.admitted
        self._over.set()
        return cut

    async def over(self) -> None:
        """Waits until the last one has to leave."""
        await self._over.wait()
