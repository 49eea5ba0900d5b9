"""One cell: asked of the kernel, waited for, stopped where it must be, told as an `Execution`."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from mle_ideator.protocols import SandboxLimits
from mle_ideator.sandboxes import notes, processes
from mle_ideator.sandboxes.facts import bound_bytes
from mle_ideator.sandboxes.interior import Interior
from mle_ideator.sandboxes.limits.watching import Watch
from mle_ideator.sandboxes.reader import PipeReader
from mle_ideator.sandboxes.reply import Reply
from mle_ideator.sandboxes.running import RunningKernel
from mle_ideator.types import Execute, Execution, SandboxLimit, Status
from mle_ideator.waiting import finish, first_of

_BY_SIGNAL: dict[int, SandboxLimit] = {signal.SIGXCPU: "cpu_time", signal.SIGXFSZ: "file_size"}


@dataclass
class _Ended:
    """How it ended."""

    status: Status
    lines: list[str]
    limits: list[SandboxLimit] = field(default_factory=list)


@dataclass(frozen=True)
class Cell:
    """To be run once. `mend` puts right what it did to the workspace, and says so."""

    interior: Interior
    kernel: RunningKernel
    watch: Watch
    reader: PipeReader
    limits: SandboxLimits
    mend: Callable[[], Coroutine[Any, Any, list[str]]]

    async def run(self, action: Execute, timeout_s: float) -> Execution:
        """It ends within `timeout_s` plus five seconds, whatever it does."""
        await self.watch.ready()
        self.watch.begin()
        before = self.interior.keeper.started() if self.interior.keeper else set()
        earlier, earlier_dropped = self.reader.take()
        self.reader.begin(self.limits.output_chars - len(earlier))
        started = time.monotonic()
        reply = self.kernel.ask(action)
        try:
            await first_of(reply, self.kernel.ended, self.watch.breached, timeout_s=timeout_s)
        except asyncio.CancelledError:
            await finish(self._stop(reply, before, spare_jobs=True))
            raise
        duration = time.monotonic() - started
        ended = await finish(self._conclude(reply, before, duration, timeout_s))
        ended.lines += await finish(self.mend())
        text, dropped = self.reader.take()
        if dropped:
            ended.limits.append("output")
        return Execution(
            status=ended.status,
            text=notes.with_earlier(earlier, text),
            duration_s=duration,
            dropped_chars=dropped + earlier_dropped,
            note="\n".join(ended.lines),
            limits_hit=tuple(dict.fromkeys(ended.limits)),
        )

    async def _conclude(
        self, reply: asyncio.Task[Reply], before: set[int], duration: float, timeout_s: float
    ) -> _Ended:
        breach = self.watch.breached.result() if self.watch.breached.done() else None
        await self.watch.settle()
        hits = self.watch.hits() if self.kernel.ended.done() else ()
        if reply.done():
            said = reply.result()
            ended = _Ended(said.status, notes.exit_code(said.exit_code))
            if self.watch.breached.done():  # it ended as it was to be stopped
                late = self.watch.breached.result()
                ended.lines.append(late.words.removeprefix("stopped: "))
                ended.limits.append(late.limit)
                self.watch.begin()
        elif self.kernel.ended.done():
            reply.cancel()
            ended = await self._died(out_of_memory=any(limit == "memory" for limit, _ in hits))
        elif breach is not None:
            killed = await self._stop(reply, set(), spare_jobs=False)
            lines = [breach.words, notes.state(kept=self._kernel_kept), *notes.ended(killed)]
            ended = _Ended("limit", lines, [breach.limit])
            await self.watch.settle()  # what it still wrote is not the next cell's
            self.watch.begin()  # it has been dealt with
        else:
            killed = await self._stop(reply, before, spare_jobs=True)
            words = notes.timeout(duration, timeout_s, kept=self._kernel_kept)
            ended = _Ended("timeout", [words, *notes.ended(killed)], ["wall_time"])
        hits = (*hits, *self.watch.hits())  # a bomb may have met its bound while it was stopped
        ended.lines += [words for _, words in hits]
        ended.limits += [limit for limit, _ in hits]
        kept = self._kernel_kept
        if "processes" in ended.limits:  # what it left behind takes the room of the next
            killed = await self.interior.end_agents(before, spare_jobs=True)
            ended.lines += notes.ended(killed)
            if not self._kernel_kept and kept:
                ended.lines.append(notes.died("what it had started could not be ended without it"))
            self.watch.hits()  # what was refused to them meanwhile
        ended.lines += self.interior.news()
        return ended

    async def _died(self, *, out_of_memory: bool) -> _Ended:
        why = self.kernel.ended.result()
        if out_of_memory:
            why = notes.out_of_memory(bound_bytes(self.limits))
        await self.interior.drop_kernel()
        limits = [limit for number, limit in _BY_SIGNAL.items() if why == f"signal {int(number)}"]
        return _Ended("died", [notes.died(why)], limits)

    async def _stop(
        self, reply: asyncio.Task[Reply], before: set[int], *, spare_jobs: bool
    ) -> list[processes.Process]:
        """Interrupt, terminate, kill. What earlier cells left behind lives if the kernel does."""
        if await self.kernel.interrupt(reply):
            return await self.interior.end_agents(before, spare_jobs=spare_jobs)
        reply.cancel()
        await self.kernel.terminate()
        if spare_jobs:
            await self.interior.drop_kernel()
        else:
            await self.interior.drop_keeper()
        return []

    @property
    def _kernel_kept(self) -> bool:
        return self.interior.kernel is self.kernel
