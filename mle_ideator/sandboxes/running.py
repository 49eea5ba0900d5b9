"""One kernel with its supervisor: started, asked, stopped, ended."""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mle_ideator.errors import SandboxError
from mle_ideator.sandboxes import processes
from mle_ideator.sandboxes.connection_file import write_connection_file
from mle_ideator.sandboxes.environment import user_packages
from mle_ideator.sandboxes.launching import HostProcess, Launch, Surroundings
from mle_ideator.sandboxes.reader import PipeReader
from mle_ideator.sandboxes.reply import Reply
from mle_ideator.sandboxes.trees import remove_tree
from mle_ideator.types import Execute
from mle_ideator.waiting import first_of

START_TIMEOUT_S = 60.0
# Together less than four seconds: a cell ends at most five seconds after its limit.
INTERRUPT_GRACE_S = 0.9
INTERRUPTS = 2
TERMINATE_GRACE_S = 0.7
_PROGRAMS = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class Placement:
    """How a backend wants a kernel to be started."""

    wrapper: tuple[str, ...] = ()
    """Words put before the kernel's command."""
    environment: dict[str, str]
    cwd: str
    """Where the wrapper is started."""
    workspace: str
    """The workspace, as agent code sees it."""
    folder: Path
    """Where the kernel's sockets lie."""
    seen_as: str
    """The same folder, as the kernel sees it."""
    max_file_bytes: int
    no_new_privileges: bool = True
    python: str = sys.executable
    """The Python that runs supervisor and kernel, as the wrapper's surroundings know it."""
    supervisor: str = str(_PROGRAMS / "supervisor.py")
    """The supervisor's program, likewise."""
    launch: Launch = HostProcess
    """Starts the supervisor."""


class RunningKernel:
    """A live kernel. `ended` is done once it is not, with the reason in words."""

    def __init__(self, placement: Placement, reader: PipeReader) -> None:
        self._placement = placement
        self._reader = reader
        self._launched = placement.launch(
            Surroundings(
                environment=placement.environment, cwd=placement.cwd, folder=placement.folder
            )
        )
        self._cleanup = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []
        self._interrupts: set[asyncio.Task[None]] = set()
        self._chain: list[int] = []
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def start(self) -> None:
        """Start and wait for a real reply. Raises `SandboxError` with what the kernel wrote."""
        info = self._prepare_folder()
        self._cleanup.push_async_callback(asyncio.to_thread, remove_tree, self._placement.folder)
        self._cleanup.push_async_callback(self._launched.end)
        await self._launched.start(self._command(), self._reader.writing_end)
        # The client takes as long to import as a kernel to start: the two go on side by side.
        from mle_ideator.sandboxes.connection import Connection

        self._connection = Connection(info)
        self._cleanup.callback(self._connection.close)
        self._tasks.append(asyncio.create_task(self._watch_reports()))
        await self._wait_until_ready()
        self._chain = processes.descendants(self._launched.pid)
        self._tasks.append(asyncio.create_task(self._watch_connection()))

    def ask(self, action: Execute) -> asyncio.Task[Reply]:
        """Send a cell; the task is done when the kernel has answered."""
        return asyncio.create_task(self._connection.execute(action))

    async def interrupt(self, reply: asyncio.Task[Reply]) -> bool:
        """Interrupt, more than once since code may swallow one. True if the cell ended by it."""
        self._interrupts.clear()
        for _ in range(INTERRUPTS):
            request = asyncio.create_task(self._connection.interrupt())
            self._interrupts.add(request)
            await first_of(reply, self.ended, timeout_s=INTERRUPT_GRACE_S)
            if reply.done() or self.ended.done():
                break
        if reply.done():  # a late signal must not hit the next cell
            await asyncio.wait(self._interrupts, timeout=INTERRUPT_GRACE_S)
        answered = all(request.done() for request in self._interrupts)
        return reply.done() and answered and not self.ended.done()

    async def terminate(self) -> None:
        """Ask the kernel's process to end; `close` kills what does not."""
        processes.kill(self._chain[-1:], signal.SIGTERM)
        await asyncio.wait({self.ended}, timeout=TERMINATE_GRACE_S)

    def agents(self) -> list[processes.Process]:
        """What agent code has started and still runs."""
        return processes.agents_below(self._launched.pid, self._chain)

    def is_attached(self, process: processes.Process) -> bool:
        """Is it a child of the kernel (a worker, say), not a background job of its own?"""
        return process.parent == self._chain[-1]

    def remarks(self) -> list[str]:
        """What has happened around it since the last cell that the agent should know."""
        return self._launched.remarks()

    async def close(self) -> None:
        """Kill everything below the supervisor and wait until it is gone."""
        for task in (*self._tasks, *self._interrupts):
            task.cancel()
        await self._cleanup.aclose()
        await asyncio.gather(*self._tasks, *self._interrupts, return_exceptions=True)
        self.ended.cancel()

    def _prepare_folder(self) -> dict[str, Any]:
        folder = self._placement.folder
        folder.mkdir(mode=0o700)
        shutil.copyfile(_PROGRAMS / "kernel_process.py", folder / "kernel_process.py")
        return write_connection_file(folder, self._placement.seen_as)

    def _command(self) -> list[str]:
        place = self._placement
        return [
            *(place.python, "-I", "-S", place.supervisor),
            *(str(place.max_file_bytes), str(int(place.no_new_privileges))),
            *place.wrapper,
            *(place.python, *_own_libraries_only()),
            *(f"{place.seen_as}/kernel_process.py", place.seen_as, place.workspace),
        ]

    async def _wait_until_ready(self) -> None:
        ready = asyncio.create_task(self._connection.ready())
        self._tasks.append(ready)
        await first_of(ready, self.ended, timeout_s=START_TIMEOUT_S)
        if ready.done() and not self.ended.done():
            return
        why = self.ended.result() if self.ended.done() else f"no reply in {START_TIMEOUT_S:.0f} s"
        said, _ = self._reader.take()
        said = said.strip()[-2000:] or "nothing"
        raise SandboxError(f"the kernel did not start: {why}. It wrote: {said}")

    async def _watch_reports(self) -> None:
        async for line in self._launched.reports():
            if found := re.fullmatch(rb"exit (-?\d{1,3})\n", line):
                return self._end(await self._launched.explain(int(found[1])))
        return self._end("it lost its supervisor")

    async def _watch_connection(self) -> None:
        """A kernel that hangs up or sends what is no reply is as good as dead."""
        await asyncio.wait({self._connection.lost})
        self._end(self._connection.lost.result())

    def _end(self, why: str) -> None:
        if not self.ended.done():
            self.ended.set_result(why)


def _own_libraries_only() -> tuple[str, ...]:
    """Nothing that agent code left in its workspace or its home has a part in the next start."""
    return ("-P",) if user_packages() else ("-P", "-s")
