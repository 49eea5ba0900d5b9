"""One kernel: started, asked, stopped, ended."""

from __future__ import annotations

import asyncio
import secrets
import signal
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from mle_ideator.sandboxes.keeping import START_TIMEOUT_S, Keeper
from mle_ideator.sandboxes.reply import Reply
from mle_ideator.sandboxes.threads import at_once
from mle_ideator.sandboxes.trees import remove_tree
from mle_ideator.types import Execute
from mle_ideator.waiting import first_of

# Together less than four seconds: a cell ends at most five seconds after its limit.
INTERRUPT_GRACE_S = 0.9
INTERRUPTS = 2
TERMINATE_GRACE_S = 0.5
_CHANNELS = ("shell", "iopub", "stdin", "control", "hb")


class RunningKernel:
    """A live kernel. `ended` is done once it is not, with the reason in words."""

    def __init__(self) -> None:
        self._cleanup = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []
        self._interrupts: set[asyncio.Task[None]] = set()
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def dial(self, folder: Path) -> None:
        """Begin to call a kernel whose sockets will lie in a fresh folder in `folder`."""
        # a name that nobody could know before; the kernel makes it, since it may be another user
        self._folder = folder / secrets.token_hex(4)
        self._cleanup.push_async_callback(at_once, remove_tree, self._folder)
        self._key = secrets.token_hex(32)
        from mle_ideator.sandboxes.connection import Connection

        here = {**_connection(str(self._folder)), "key": self._key.encode()}
        self._connection = Connection(here)  # it dials until somebody is there
        self._cleanup.callback(self._connection.close)

    async def start(self, keeper: Keeper) -> None:
        """Start and wait for a real reply. Raises `SandboxError` with what the kernel wrote."""
        self._keeper = keeper
        seen_as = f"{keeper.folder}/{self._folder.name}"
        ready = asyncio.create_task(self._connection.ready())
        self._tasks.append(ready)
        await keeper.start_kernel({**_connection(seen_as), "key": self._key}, seen_as)
        self._tasks.append(asyncio.create_task(self._watch_process()))
        await first_of(ready, self.ended, timeout_s=START_TIMEOUT_S)
        if not ready.done() or self.ended.done():
            raise keeper.not_started(self.ended.result() if self.ended.done() else None)
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
            await asyncio.wait(self._interrupts, timeout=TERMINATE_GRACE_S)
        answered = all(request.done() for request in self._interrupts)
        return reply.done() and answered and not self.ended.done()

    async def terminate(self) -> None:
        """Ask the kernel's process to end; `close` kills what does not."""
        self._keeper.signal_kernel(signal.SIGTERM)
        await asyncio.wait({self.ended}, timeout=TERMINATE_GRACE_S)

    async def close(self) -> None:
        """Hang up; the keeper ends the process."""
        for task in (*self._tasks, *self._interrupts):
            task.cancel()
        await self._cleanup.aclose()
        await asyncio.gather(*self._tasks, *self._interrupts, return_exceptions=True)
        self.ended.cancel()

    async def _watch_process(self) -> None:
        self._end(await asyncio.shield(self._keeper.kernel_ended))

    async def _watch_connection(self) -> None:
        """A kernel that hangs up or sends what is no reply is as good as dead."""
        await asyncio.wait({self._connection.lost})
        self._end(self._connection.lost.result())

    def _end(self, why: str) -> None:
        if not self.ended.done():
            self.ended.set_result(why)


def _connection(folder: str) -> dict[str, Any]:
    """What a Jupyter connection file says, but for the key. The folder is named differently here
    and inside."""
    ports = {f"{channel}_port": number for number, channel in enumerate(_CHANNELS, start=1)}
    return {"transport": "ipc", "signature_scheme": "hmac-sha256", "ip": f"{folder}/s", **ports}
