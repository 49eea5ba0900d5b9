"""The engine that all sandboxes here share: one Jupyter kernel, its cells, its replacements.

A backend is a subclass that says how to start one process (`_place`), what that covers, and
whether it can work on this machine (`unavailable`).
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self, TypeVar

import msgspec

from mle_ideator.errors import SandboxError
from mle_ideator.protocols import SandboxRequest
from mle_ideator.sandboxes import notes, processes
from mle_ideator.sandboxes.facts import sandbox_info
from mle_ideator.sandboxes.private import PrivateFolder, remove_leftovers
from mle_ideator.sandboxes.reader import PipeReader
from mle_ideator.sandboxes.running import Placement, RunningKernel, first_of
from mle_ideator.types import Execute, Execution, SandboxInfo, Status

T = TypeVar("T")

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
        """After a cell: put changed inputs back; returns their names."""
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
        remove_leftovers()
        self._private = PrivateFolder()
        self._reader = PipeReader(int(_BACKGROUND_SHARE * self._request.max_output_chars))
        try:
            self._prepare()
            await self._start_kernel()
        except BaseException:
            await self._close()
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
        await _finish(self._close())

    async def execute(self, action: Execute, timeout_s: float) -> Execution:
        """Run one cell; it ends within `timeout_s` plus five seconds, whatever it does."""
        if not self._open:
            raise SandboxError("the sandbox is not open: use it within `async with`")
        async with self._one_at_a_time:
            news = await self._drop_if_dead()
            kernel = self._kernel or await self._start_kernel()
            execution = await self._run(kernel, action, timeout_s)
            note = "\n".join(filter(None, [*news, execution.note]))
            return msgspec.structs.replace(execution, note=note)

    # ------------------------------------------------------------------------ one cell

    async def _run(self, kernel: RunningKernel, action: Execute, timeout_s: float) -> Execution:
        before = {process.pid for process in kernel.agents()}
        earlier, earlier_dropped = self._reader.take()
        self._reader.begin(self._request.max_output_chars - len(earlier))
        started = time.monotonic()
        reply = kernel.ask(action)
        try:
            await first_of(reply, kernel.ended, timeout_s=timeout_s)
        except asyncio.CancelledError:
            await _finish(self._stop(kernel, reply, before))
            raise
        duration = time.monotonic() - started
        conclusion = self._conclude(kernel, reply, before, duration, timeout_s)
        status, lines = await _finish(conclusion)
        lines += notes.inputs_restored(self._mend_inputs())
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
        reply: asyncio.Task[dict[str, Any]],
        before: set[int],
        duration: float,
        timeout_s: float,
    ) -> tuple[Status, list[str]]:
        if reply.done():
            content = reply.result()
            status: Status = "ok" if content.get("status") == "ok" else "error"
            return status, [*notes.exit_code(content), *notes.still_running(kernel.agents())]
        if kernel.ended.done():
            reply.cancel()
            await self._drop_kernel(kernel)
            return "died", [notes.died(kernel.ended.result())]
        killed = await self._stop(kernel, reply, before)
        kept = self._kernel is kernel
        running = notes.still_running(kernel.agents()) if kept else []
        return "timeout", [notes.timeout(duration, timeout_s, kept), *notes.ended(killed), *running]

    async def _stop(
        self, kernel: RunningKernel, reply: asyncio.Task[dict[str, Any]], before: set[int]
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
        except BaseException:
            await _finish(kernel.close())
            raise
        self._kernel = kernel
        return kernel

    async def _drop_if_dead(self) -> list[str]:
        if self._kernel is None or not self._kernel.ended.done():
            return []
        why = self._kernel.ended.result()
        await self._drop_kernel(self._kernel)
        return [notes.died_before(why)]

    async def _drop_kernel(self, kernel: RunningKernel) -> None:
        self._kernel = None
        await kernel.close()

    async def _close(self) -> None:
        if self._kernel is not None:
            await self._drop_kernel(self._kernel)
        self._reader.close()
        self._private.remove()


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


async def _finish(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end even if the caller is cancelled meanwhile; then pass that on."""
    task = asyncio.create_task(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        task.exception()
        raise asyncio.CancelledError
    return task.result()
