"""A worker process as its driver sees it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from contextlib import suppress
from typing import IO, Literal, Self

from mle_ideator.errors import RuntimeFailure
from mle_ideator.rl.executor import frames, guard
from mle_ideator.rl.executor.frames import Hello, Order, Ready, Reply
from mle_ideator.types import Value
from mle_ideator.waiting import finish

_MODULE = "mle_ideator.rl.executor.worker"
_START_S = 120.0
_KILL_S = 20.0
"""For a guard to end everything; then it is killed itself."""
_LAST_WORDS_S = 5.0
_SHOWN = 2000
"""Bytes of what a worker printed, from its end."""


class Try(Value, frozen=True, kw_only=True):
    """What came of one execution."""

    status: Literal["ok", "error", "timeout", "died", "infra_error"]
    value: bytes = b""
    detail: str = ""
    seconds: float = 0.0
    cached: bool = False
    final: bool = True
    node: str = ""


class Worker:
    """One process, which lives from work to work, below its guard.

    Its end of a socket brings orders and takes replies; the guard's standard input is the lifeline,
    its standard output tells why the worker is no more. What functions print goes to a nameless
    file: the end of it is told if the worker dies, else it is thrown away.
    """

    def __init__(
        self,
        process: Process,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        printed: IO[bytes],
    ) -> None:
        self._process, self._printed = process, printed
        self._replies, self._orders = streams
        self._verdict = asyncio.create_task(_verdict(process))
        self._guard = 0
        self.pid = 0
        self.fit = True
        """For another work."""

    @classmethod
    async def start(cls, environment: Mapping[str, str]) -> Self:
        """A new one, once it can take work. Raises `RuntimeFailure`."""
        ours, theirs = socket.socketpair()
        printed = tempfile.TemporaryFile(mode="ab+")  # noqa: SIM115 closed when the worker ends
        try:
            with theirs:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-P", "-u", "-X", "faulthandler"),
                    *("-m", _MODULE, str(theirs.fileno())),
                    stdin=PIPE,
                    stdout=PIPE,
                    stderr=printed,
                    pass_fds=[theirs.fileno()],
                    env={**os.environ, **environment},
                    start_new_session=True,  # a Ctrl-C at the terminal reaches the driver only
                )
            worker = cls(process, await asyncio.open_connection(sock=ours), printed)
        except BaseException as error:
            ours.close()
            printed.close()
            if isinstance(error, OSError):
                raise RuntimeFailure(f"no worker process can be started: {error}") from error
            raise
        try:
            await worker._greet()
        except BaseException:
            await finish(worker.kill())
            raise
        return worker

    async def run(self, order: Order) -> Try:
        """Have it done. The guard sees to the limit; cancelled, it kills."""
        started = time.monotonic()
        try:
            os.ftruncate(self._printed.fileno(), 0)
            with suppress(ConnectionError):  # the verdict says why
                self._orders.write(frames.packed(order))
                await self._orders.drain()
            reply = await self._reply(Reply, None)
        except BaseException:
            self.fit = False
            await finish(self.kill())
            raise
        if reply is None:
            return await self._lost(order, time.monotonic() - started)
        self.fit = not reply.spent
        if not self.fit:
            await self.kill()
        return Try(
            status=reply.status,
            value=reply.value,
            detail=reply.detail,
            seconds=reply.seconds,
            cached=reply.cached,
            final=reply.final,
        )

    async def kill(self) -> None:
        """End it with all that it started; returns when that is done."""
        self.fit = False
        if self._process.stdin:
            self._process.stdin.close()
        await asyncio.wait({self._verdict}, timeout=_KILL_S)
        if not self._verdict.done() and self._guard:
            with suppress(ProcessLookupError):
                os.kill(self._guard, signal.SIGKILL)
            await asyncio.wait({self._verdict}, timeout=_LAST_WORDS_S)
        _reap(self._guard)
        self._orders.close()
        with suppress(OSError):
            await self._orders.wait_closed()
        self._printed.close()

    @property
    def lives(self) -> bool:
        return not self._verdict.done()

    async def _greet(self) -> None:
        self._orders.write(frames.packed(Hello(tuple(sys.path))))
        ready = await self._reply(Ready, _START_S)
        if ready is None:
            raise RuntimeFailure(f"a worker process did not start. {self._last_printed()}")
        self.pid, self._guard = ready.worker, ready.guard

    async def _reply(self, kind: type[frames.T], timeout_s: float | None) -> frames.T | None:
        """What it answers; `None` if it is gone, or silent for too long."""
        answer = asyncio.create_task(self._read(kind))
        try:
            await asyncio.wait(
                {answer, self._verdict}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
            if self._verdict.done() and not answer.done():
                await asyncio.wait({answer}, timeout=_LAST_WORDS_S)
            return answer.result() if answer.done() else None
        except (EOFError, ConnectionError):
            return None
        finally:
            answer.cancel()

    async def _read(self, kind: type[frames.T]) -> frames.T:
        length = int.from_bytes(await self._replies.readexactly(frames.LENGTH), "big")
        return frames.unpacked(await self._replies.readexactly(length), kind)

    async def _lost(self, order: Order, seconds: float) -> Try:
        """It is no more, or about to be."""
        await asyncio.wait({self._verdict}, timeout=_LAST_WORDS_S)
        printed = self._last_printed()
        await self.kill()
        verdict = self._verdict.result()
        if verdict.why == "timeout":
            return Try(status="timeout", detail=_late(order, seconds), seconds=seconds)
        detail = f"its worker process {_ended_with(verdict)}. {printed}"
        return Try(status="died", detail=detail.strip(), seconds=seconds)

    def _last_printed(self) -> str:
        size = os.fstat(self._printed.fileno()).st_size
        end = os.pread(self._printed.fileno(), _SHOWN, max(0, size - _SHOWN))
        text = end.decode(errors="replace").strip()
        return f"It printed:\n{text}" if text else ""


async def _verdict(process: Process) -> guard.Verdict:
    assert process.stdout  # noqa: S101 - a pipe
    said = await process.stdout.read()
    await process.wait()
    return guard.told(said.decode())


def _reap(guard: int) -> None:
    """A driver that is the first process of a container inherits it."""
    if guard:
        with suppress(ChildProcessError):
            os.waitpid(guard, os.WNOHANG)


def _late(order: Order, seconds: float) -> str:
    if seconds < order.limit_s:
        return "the module of its function took too long to import"
    return f"killed at its limit of {order.limit_s:g} s"


def _ended_with(verdict: guard.Verdict) -> str:
    if verdict.why == "let_go":
        return "closed its connection"
    if verdict.code < 0:
        return f"was killed ({signal.Signals(-verdict.code).name})"
    return f"ended with code {verdict.code}"
