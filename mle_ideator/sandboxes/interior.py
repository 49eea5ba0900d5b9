"""What runs in an open sandbox: a keeper, a kernel, a watch; replaced when they are gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from mle_ideator.errors import SandboxError
from mle_ideator.sandboxes import notes, processes
from mle_ideator.sandboxes.keeping import Keeper
from mle_ideator.sandboxes.running import RunningKernel
from mle_ideator.sandboxes.watching import Watch
from mle_ideator.waiting import finish

_ROUNDS = 20
"""Of killing what a cell has started, which may have started more meanwhile."""


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
        ended = [notes.job_ended(number, code) for number, code in self.keeper.ended_jobs()]
        return [*ended, *notes.still_running(self.keeper.agents())]

    async def end_agents(self, before: set[int], *, spare_jobs: bool) -> list[processes.Process]:
        """Kill what was not there before, jobs perhaps apart, and the kernel's own workers."""
        killed: dict[int, processes.Process] = {}
        for _ in range(_ROUNDS if self.keeper else 0):
            keeper = self.keeper
            if keeper is None:
                break
            found = [p for p in keeper.agents() if p.pid not in before or keeper.is_attached(p)]
            jobs = await keeper.jobs() if found and spare_jobs else set()
            found = [process for process in found if process.pid not in jobs]
            if not found:
                break
            processes.kill(process.pid for process in found)
            killed |= {process.pid: process for process in found}
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
