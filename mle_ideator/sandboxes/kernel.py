"""The engine that all sandboxes here share: one Jupyter kernel, its cells, its replacements.

A backend is a subclass that says how to start one process (`_place`), what that covers, and
whether it can work on this machine (`unavailable`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

import msgspec

from mle_ideator.errors import SandboxError
from mle_ideator.protocols import SandboxRequest
from mle_ideator.sandboxes import notes, processes
from mle_ideator.sandboxes.facts import sandbox_info
from mle_ideator.sandboxes.private import OUTPUT, PrivateFolder, remove_leftovers
from mle_ideator.sandboxes.reader import PipeReader
from mle_ideator.sandboxes.reply import Reply
from mle_ideator.sandboxes.running import Placement, RunningKernel
from mle_ideator.sandboxes.trees import make_usable
from mle_ideator.types import Execute, Execution, SandboxInfo, Status
from mle_ideator.waiting import finish, first_of

_log = logging.getLogger(__name__)

_BACKGROUND_SHARE = 0.2
"""Of a cell's text, for what background work wrote since the last cell."""


class KernelSandbox(ABC):
    """A `Sandbox` around a Jupyter kernel."""

    kind: ClassVar[str]
    network: ClassVar[bool]
    covers: ClassVar[tuple[str, ...]]
    does_not_cover: ClassVar[tuple[str, ...]]

    def __init__(self, request: SandboxRequest) -> None:
        self._request = request
        self._workspace = Path(request.workspace).resolve()
        self._inputs = Path(request.inputs).resolve()
        self._kernel: RunningKernel | None = None
        self._kernels_started = 0
        self._open = False
        self._one_at_a_time = asyncio.Lock()

    # ------------------------------------------------------------------- for backends

    @classmethod
    @abstractmethod
    def unavailable(cls) -> str | None:
        """Why it can not work on this machine and how to mend that, or `None`."""

    @abstractmethod
    def _place(self, folder: Path) -> Placement:
        """How to start a kernel whose sockets lie in `folder`. Called for each new kernel."""

    def _prepare(self) -> None:  # noqa: B027 most backends need nothing
        """Before the first kernel: whatever the backend needs on this machine."""

    def _mend_inputs(self) -> list[str]:
        """After a cell: put changed inputs back; returns what is to be said of it."""
        return []

    # ------------------------------------------------------------------------- Sandbox

    @property
    def info(self) -> SandboxInfo:
        return sandbox_info(self.kind, self.network, self.covers, self.does_not_cover)

    async def __aenter__(self) -> Self:
        if reason := self.unavailable():
            raise SandboxError(f"the {self.kind} sandbox can not be used here: {reason}")
        if not self._inputs.is_dir():
            raise SandboxError(f"the folder with the inputs does not exist: {self._inputs}")
        self._workspace.mkdir(parents=True, exist_ok=True)
        await asyncio.to_thread(remove_leftovers)
        self._private = PrivateFolder()
        self._reader = PipeReader(
            self._private.path / OUTPUT, int(_BACKGROUND_SHARE * self._request.limits.output_chars)
        )
        try:
            self._prepare()
            await self._start_kernel()
        except BaseException:
            await finish(self._close())
            raise
        self._open = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._open = False
        await finish(self._close())

    async def execute(self, action: Execute, timeout_s: float) -> Execution:
        """Run one cell; it ends within `timeout_s` plus five seconds, whatever it does."""
        if not self._open:
            raise SandboxError("the sandbox is not open: use it within `async with`")
        async with self._one_at_a_time:
            news = await self._drop_if_dead()
            started = time.monotonic()
            try:
                kernel = self._kernel or await self._restart_kernel()
            except SandboxError as error:
                execution = _not_run(time.monotonic() - started, str(error))
            else:
                execution = await self._run(kernel, action, timeout_s)
            note = "\n".join(filter(None, [*news, execution.note]))
            return msgspec.structs.replace(execution, note=note)

    # ------------------------------------------------------------------------ one cell

    async def _run(self, kernel: RunningKernel, action: Execute, timeout_s: float) -> Execution:
        before = {process.pid for process in kernel.agents()}
        earlier, earlier_dropped = self._reader.take()
        self._reader.begin(self._request.limits.output_chars - len(earlier))
        started = time.monotonic()
        reply = kernel.ask(action)
        try:
            await first_of(reply, kernel.ended, timeout_s=timeout_s)
        except asyncio.CancelledError:
            await finish(self._stop(kernel, reply, before))
            raise
        duration = time.monotonic() - started
        conclusion = self._conclude(kernel, reply, before, duration, timeout_s)
        status, lines = await finish(conclusion)
        lines += self._mend()
        text, dropped = self._reader.take()
        return Execution(
            status=status,
            text=notes.with_earlier(earlier, text),
            duration_s=duration,
            dropped_chars=dropped + earlier_dropped,
            note="\n".join(lines),
        )

    async def _conclude(
        self,
        kernel: RunningKernel,
        reply: asyncio.Task[Reply],
        before: set[int],
        duration: float,
        timeout_s: float,
    ) -> tuple[Status, list[str]]:
        if reply.done():
            said = reply.result()
            running = notes.still_running(kernel.agents())
            return said.status, [*notes.exit_code(said.exit_code), *kernel.remarks(), *running]
        if kernel.ended.done():
            reply.cancel()
            await self._drop_kernel(kernel)
            return "died", [notes.died(kernel.ended.result())]
        killed = await self._stop(kernel, reply, before)
        kept = self._kernel is kernel
        running = [*kernel.remarks(), *notes.still_running(kernel.agents())] if kept else []
        return "timeout", [notes.timeout(duration, timeout_s, kept), *notes.ended(killed), *running]

    async def _stop(
        self, kernel: RunningKernel, reply: asyncio.Task[Reply], before: set[int]
    ) -> list[processes.Process]:
        """Interrupt, terminate, kill. Background jobs of earlier cells live if the kernel does."""
        if await kernel.interrupt(reply):
            return _end_agents(kernel, before)
        reply.cancel()
        await kernel.terminate()
        await self._drop_kernel(kernel)
        return []

    # ------------------------------------------------------------------------- kernels

    async def _start_kernel(self) -> RunningKernel:
        self._kernels_started += 1
        folder = self._private.kernels / str(self._kernels_started)
        kernel = RunningKernel(self._place(folder), self._reader)
        try:
            await kernel.start()
        except BaseException as error:
            await finish(kernel.close())
            if isinstance(error, OSError):
                raise SandboxError(f"the kernel did not start: {error}") from error
            raise
        self._kernel = kernel
        return kernel

    async def _restart_kernel(self) -> RunningKernel:
        """In folders that the last one may have closed, removed or replaced."""
        try:
            self._private.make_usable()
            make_usable(self._workspace)
        except OSError as error:
            raise SandboxError(str(error)) from error
        self._mend_inputs()
        return await self._start_kernel()

    def _mend(self) -> list[str]:
        with suppress(OSError):
            make_usable(self._workspace)
        return self._mend_inputs()

    async def _drop_if_dead(self) -> list[str]:
        if self._kernel is None or not self._kernel.ended.done():
            return []
        why = self._kernel.ended.result()
        await self._drop_kernel(self._kernel)
        return [notes.died_before(why)]

    async def _drop_kernel(self, kernel: RunningKernel) -> None:
        self._kernel = None
        await finish(kernel.close())

    async def _close(self) -> None:
        """Never raises: what can not be cleared away must not hide how the session ended."""
        try:
            async with AsyncExitStack() as ending:
                ending.push_async_callback(asyncio.to_thread, self._private.remove)
                ending.callback(self._reader.close)
                if self._kernel is not None:
                    await self._drop_kernel(self._kernel)
        except Exception as error:
            _log.warning("the sandbox was not cleared away in full: %r", error)


def _end_agents(kernel: RunningKernel, before: set[int]) -> list[processes.Process]:
    """Kill what the stopped cell started, and the kernel's own workers of earlier cells."""
    killed: dict[int, processes.Process] = {}
    for _ in range(20):
        found = [p for p in kernel.agents() if p.pid not in before or kernel.is_attached(p)]
        if not found:
            break
        processes.kill(process.pid for process in found)
        killed |= {process.pid: process for process in found}
    return list(killed.values())


def _not_run(duration_s: float, why: str) -> Execution:
    return Execution(status="died", text="", duration_s=duration_s, note=notes.not_started(why))
