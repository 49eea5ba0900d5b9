"""How a kernel's supervisor is started, heard and ended; by default, as a process here."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from mle_ideator.sandboxes import processes
from mle_ideator.sandboxes.environment import MARK

END_TIMEOUT_S = 1.3


class Launched(Protocol):
    """A supervisor. `end` may be called at any time, also after a start that failed."""

    @property
    def pid(self) -> int:
        """Its process, as this machine counts them: agent code runs below it."""
        ...

    async def start(self, command: Sequence[str], output: int) -> None:
        """Start `command`, the supervisor; what it writes goes to the descriptor `output`."""
        ...

    def reports(self) -> AsyncIterator[bytes]:
        """Its lines, until it is gone."""
        ...

    async def explain(self, code: int) -> str:
        """How the kernel ended, in words, given its exit code (negative: the signal)."""
        ...

    def remarks(self) -> list[str]:
        """What has happened since the last time that the agent should know."""
        ...

    async def end(self) -> None:
        """End it and everything below."""
        ...


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a supervisor is started in."""

    environment: Mapping[str, str]
    cwd: str
    folder: Path
    """Where the kernel's sockets lie."""


Launch = Callable[[Surroundings], Launched]


class HostProcess:
    """The supervisor as a child of the runtime, with pipes for lifeline and reports."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        return self._started.pid

    async def start(self, command: Sequence[str], output: int) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=output,
            env=self._surroundings.environment,
            cwd=self._surroundings.cwd,
            start_new_session=True,
        )

    async def reports(self) -> AsyncIterator[bytes]:
        with suppress(ValueError):  # a line too long: not from the supervisor
            async for line in cast(asyncio.StreamReader, self._started.stdout):
                yield line

    async def explain(self, code: int) -> str:
        return ended_by(code)

    def remarks(self) -> list[str]:
        return []

    async def end(self) -> None:
        if self._process is None:
            return
        if self._process.stdin is not None:
            self._process.stdin.close()
        timer = asyncio.get_running_loop().call_later(END_TIMEOUT_S, self._kill)
        await self._process.wait()
        timer.cancel()
        await asyncio.to_thread(processes.kill_marked, self._surroundings.environment[MARK])

    @property
    def _started(self) -> asyncio.subprocess.Process:
        return cast(asyncio.subprocess.Process, self._process)

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            self._started.kill()


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
