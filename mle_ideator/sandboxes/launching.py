"""How a supervisor is started, spoken to, heard and ended; by default, as a process here."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Protocol, cast

from mle_ideator.sandboxes import processes
from mle_ideator.sandboxes.environment import MARK
from mle_ideator.sandboxes.placement import PROGRAMS, Placement
from mle_ideator.sandboxes.threads import at_once

END_TIMEOUT_S = 1.3


class Launched(Protocol):
    """A supervisor. `end` may be called at any time, also after a start that failed."""

    @property
    def pid(self) -> int:
        """Its process, as this machine counts them: agent code runs below it."""
        ...

    async def start(self, placement: Placement, output: int) -> None:
        """Start it; what is written in the sandbox goes to the descriptor `output`."""
        ...

    def send(self, command: bytes) -> None:
        """A command for the keeper; nothing happens if that is gone."""
        ...

    def reports(self) -> AsyncIterator[bytes]:
        """Lines, until it is gone."""
        ...

    async def end(self) -> None:
        """End it and everything below."""
        ...


class HostProcess:
    """The supervisor as a child of the runtime, with pipes for lifeline and reports."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        return self._started.pid

    async def start(self, placement: Placement, output: int) -> None:
        self._mark = placement.environment[MARK]
        self._process = await asyncio.create_subprocess_exec(
            *(placement.python, "-I", "-S", str(PROGRAMS / "start.py")),
            *("supervisor", json.dumps(placement.supervisor())),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=output,
            env=placement.environment,
            cwd=placement.cwd,
            start_new_session=True,
        )

    def send(self, command: bytes) -> None:
        with suppress(OSError):
            cast(asyncio.StreamWriter, self._started.stdin).write(command)

    async def reports(self) -> AsyncIterator[bytes]:
        with suppress(ValueError):  # a line too long: not from the supervisor
            async for line in cast(asyncio.StreamReader, self._started.stdout):
                yield line

    async def end(self) -> None:
        if self._process is None:
            return
        killed = self._process.returncode is not None
        cast(asyncio.StreamWriter, self._process.stdin).close()
        timer = asyncio.get_running_loop().call_later(END_TIMEOUT_S, self._kill)
        await self._process.wait()
        timer.cancel()
        if killed or self._process.returncode != 0:  # then it has left something
            await at_once(processes.kill_marked, self._mark)

    @property
    def _started(self) -> asyncio.subprocess.Process:
        return cast(asyncio.subprocess.Process, self._process)

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            self._started.kill()


def has_ended(process: int, *, wait: bool = False) -> bool:
    """The process that a pidfd stands for. Any number of descriptors may be open."""
    poll = select.poll()
    poll.register(process, select.POLLIN)
    return bool(poll.poll(None if wait else 0))


def close_descriptor(descriptor: int) -> None:
    """If it is one: -1 stands for none."""
    if descriptor >= 0:
        os.close(descriptor)


def ended_by(code: int) -> str:
    """An exit code in words. Wrappers give a signal as 128 + number."""
    number = -code if code < 0 else code - 128
    if not 0 < number < signal.NSIG:
        return f"exit code {code}"
    hints: dict[int, str] = {
        signal.SIGKILL: ", likely memory",
        signal.SIGSEGV: ", a crash in compiled code",
        signal.SIGABRT: ", an abort in compiled code",
        signal.SIGBUS: ", a crash in compiled code",
    }
    return f"signal {number}{hints.get(number, '')}"
