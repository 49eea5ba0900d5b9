"""What runs in an open sandbox: a keeper, a kernel, a watch; replaced when they are gone."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from mle_ideator.errors import SandboxError
from mle_ideator.sandboxes import notes
from mle_ideator.sandboxes.keeping import Keeper
from mle_ideator.sandboxes.limits.watching import Watch
from mle_ideator.sandboxes.processes import Process, described, trees, without_clients
from mle_ideator.sandboxes.running import RunningKernel
from mle_ideator.waiting import finish

_END_S = 1.0
"""For ending what a cell has started, which may go on starting more; then all is ended."""
_PAUSE_S = 0.002
_HANG_UP_S = 0.3
_log = logging.getLogger(__name__)


class Interior:
    """Begins empty. `start_keeper` puts a keeper and a watch in; sockets lie in `kernels`."""

    def __init__(self, kernels: Path, start_keeper: Callable[[Interior], Awaitable[None]]) -> None:
        self._kernels, self._start_keeper = kernels, start_keeper
        self._watching: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self.watch: Watch | None = None
        self.keeper: Keeper | None = None
        self.kernel: RunningKernel | None = None

    async def start(self) -> RunningKernel:
        """A kernel, forked by the keeper that is there, if one is. Raises `SandboxError`."""
        if self.keeper is not None:
            with suppress(SandboxError):  # full memory or many processes may leave no room for it
                return await self._start()
        return await self._start()

    def watch_over(self, watch: Watch) -> None:
        """From now on, until the keeper is dropped."""
        self.watch, self._watching = watch, asyncio.create_task(watch.run())
        self._watching.add_done_callback(_log_fault)

    def go_on_watching(self) -> None:
        """Where a fault has ended the watch."""
        if self.watch is not None and self._watching is not None and self._watching.done():
            self.watch_over(self.watch)

    def news(self) -> list[str]:
        """What goes on beside the cells."""
        if self.keeper is None:
            return []
        ended = notes.jobs_ended(*self.keeper.ended_jobs())
        return [*ended, *notes.still_running(without_clients(self.keeper.agents()))]

    async def end_agents(self, before: set[int], *, spare_jobs: bool) -> list[Process]:
        """Kill what was not there before, jobs perhaps apart, and the kernel's own workers.

        They are stopped first, so that nothing forks between being seen and being killed. If that
        comes to no end, the keeper goes, with all.
        """
        keeper, killed = self.keeper, dict[int, Process]()
        if keeper is None or not keeper.started(before):
            return []
        jobs = await keeper.jobs() if spare_jobs else set()
        deadline = time.monotonic() + _END_S
        stopped: set[int] = set()
        helpers: set[int] = set()
        while found := keeper.started(before) - trees(jobs) - helpers:
            if time.monotonic() > deadline:
                await self.drop_keeper()
                break
            if fresh := found - stopped:
                keeper.signal_agents(fresh, signal.SIGSTOP)
                stopped |= fresh
            else:
                known = {process.pid: process for process in described(found)}
                own = {pid for pid, process in known.items() if keeper.is_helper(process)}
                keeper.signal_agents(own, signal.SIGCONT)
                keeper.signal_agents(found - own, signal.SIGKILL)
                killed |= {pid: known[pid] for pid in known.keys() - own}
                helpers |= own
                stopped.clear()
            await asyncio.sleep(_PAUSE_S)
        return without_clients(killed.values())

    async def drop_kernel(self) -> None:
        """End the kernel and what it left behind; all that runs, if it can not be done without."""
        await self._hang_up()
        if self.keeper is not None and not await finish(self.keeper.end_kernel()):
            await self.drop_keeper()

    async def drop_keeper(self) -> None:
        """End all that runs. Where that takes long, it goes on: `ended` waits for it."""
        await self._hang_up()
        keeper, self.keeper = self.keeper, None
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.cancel()
        if keeper is not None:
            await self._end(keeper.close(), _END_S)

    async def ended(self) -> None:
        """Until nothing is left of keepers that were dropped: many processes take long to die."""
        while self._ending:
            await finish(_awaited(self._ending.pop()))

    async def clear(self) -> bool:
        """End all but the keeper and empty what could be written, the workspace apart; false if
        that did not work."""
        await self._hang_up()
        if self.keeper is None or not await self.keeper.clear():
            return False
        self.keeper.ended_jobs()  # nothing of theirs is left to be told
        return True

    async def _start(self) -> RunningKernel:
        kernel = RunningKernel()
        try:
            await _both(self._have_keeper(), kernel.dial(self._kernels))
            assert self.keeper is not None  # noqa: S101 that is what was started
            await kernel.start(self.keeper)
            self.kernel = kernel
        except BaseException as error:
            await self._end(kernel.close(), _HANG_UP_S)
            await self.drop_keeper()
            if isinstance(error, OSError):
                raise SandboxError(f"the kernel did not start: {error}") from error
            raise
        return kernel

    async def _have_keeper(self) -> None:
        if self.keeper is None:
            await self.ended()
            await self._start_keeper(self)

    async def _hang_up(self) -> None:
        kernel, self.kernel = self.kernel, None
        if kernel is not None:
            await self._end(kernel.close(), _HANG_UP_S)

    async def _end(self, closing: Coroutine[Any, Any, None], patience_s: float) -> None:
        ending = asyncio.create_task(finish(closing))
        self._ending.add(ending)
        await asyncio.wait({ending}, timeout=patience_s)
        if ending.done():
            self._ending.discard(ending)
            await ending


async def _both(*awaited: Coroutine[Any, Any, None]) -> None:
    """Until both are done, also where one failed."""
    for result in await asyncio.gather(*awaited, return_exceptions=True):
        if result is not None:
            raise result


def _log_fault(watching: asyncio.Task[None]) -> None:
    if not watching.cancelled() and (fault := watching.exception()):
        _log.error("a watch ended by a fault; it goes on when the next cell begins", exc_info=fault)


async def _awaited(task: asyncio.Task[None]) -> None:
    await task
