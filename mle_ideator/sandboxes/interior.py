"""What runs in an open sandbox: a keeper, a kernel, a watch; replaced when they are gone."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from pathlib import Path

from mle_ideator.errors import SandboxError
from mle_ideator.sandboxes import notes, processes
from mle_ideator.sandboxes.keeping import Keeper
from mle_ideator.sandboxes.running import RunningKernel
from mle_ideator.sandboxes.watching import Watch
from mle_ideator.waiting import finish

_END_S = 1.5
"""For ending what a cell has started, which may go on starting more; then all is ended."""
_PAUSE_S = 0.002


class Interior:
    """Begins empty. `start_keeper` puts a keeper and a watch in; sockets lie in `kernels`."""

    def __init__(self, kernels: Path, start_keeper: Callable[[Interior], Awaitable[None]]) -> None:
        self._kernels, self._start_keeper = kernels, start_keeper
        self._watching: asyncio.Task[None] | None = None
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

    def agents(self) -> list[processes.Process]:
        """What agent code has started and still runs."""
        return self.keeper.agents() if self.keeper else []

    def news(self) -> list[str]:
        """What goes on beside the cells."""
        if self.keeper is None:
            return []
        ended = notes.jobs_ended(self.keeper.ended_jobs())
        return [*ended, *notes.still_running(self.keeper.agents())]

    async def end_agents(self, before: set[int], *, spare_jobs: bool) -> list[processes.Process]:
        """Kill what was not there before, jobs perhaps apart, and the kernel's own workers.

        They are stopped first, so that nothing forks between being seen and being killed. If that
        comes to no end, the keeper goes, with all.
        """
        keeper, killed = self.keeper, dict[int, processes.Process]()
        if keeper is None or not keeper.agents():
            return []
        jobs = await keeper.jobs() if spare_jobs else set()
        deadline = time.monotonic() + _END_S
        stopped: set[int] = set()
        while found := _started(keeper, before, processes.trees(jobs)):
            killed |= {process.pid: process for process in found}
            fresh = {process.pid for process in found} - stopped
            processes.kill(fresh or stopped, signal.SIGSTOP if fresh else signal.SIGKILL)
            stopped = stopped | fresh if fresh else set()
            if time.monotonic() > deadline:
                await self.drop_keeper()
                break
            await asyncio.sleep(_PAUSE_S)
        return list(killed.values())

    async def drop_kernel(self) -> None:
        """End the kernel and what it left behind; all that runs, if it can not be done without."""
        await self._hang_up()
        if self.keeper is not None and not await finish(self.keeper.end_kernel()):
            await self.drop_keeper()

    async def drop_keeper(self) -> None:
        """End all that runs."""
        await self._hang_up()
        keeper, self.keeper = self.keeper, None
        if self._watching is not None:
            self._watching.cancel()
        if keeper is not None:
            await finish(keeper.close())

    async def empty(self) -> bool:
        """End all but the keeper, empty home and temporary folder; false if it had to go, too."""
        await self._hang_up()
        if self.keeper is not None and await self.keeper.clear():
            self.keeper.ended_jobs()  # nothing of theirs is left to be told
            return True
        await self.drop_keeper()
        return False

    async def _start(self) -> RunningKernel:
        try:
            if self.keeper is None:
                await self._start_keeper(self)
            assert self.keeper is not None  # noqa: S101 that is what was started
            self.kernel = kernel = RunningKernel(self.keeper)
            await kernel.start(self._kernels)
        except BaseException as error:
            await self.drop_keeper()
            if isinstance(error, OSError):
                raise SandboxError(f"the kernel did not start: {error}") from error
            raise
        return kernel

    async def _hang_up(self) -> None:
        kernel, self.kernel = self.kernel, None
        if kernel is not None:
            await finish(kernel.close())


def _started(
    keeper: Keeper, before: Collection[int], spared: Collection[int]
) -> list[processes.Process]:
    return [
        process
        for process in keeper.agents()
        if process.pid not in spared and (process.pid not in before or keeper.is_attached(process))
    ]
