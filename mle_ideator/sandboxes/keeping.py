"""The keeper of an open sandbox, as the runtime speaks to it."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import Callable, Collection, Mapping
from contextlib import AsyncExitStack
from typing import Any

from mle_ideator.errors import SandboxError
from mle_ideator.sandboxes import processes
from mle_ideator.sandboxes.launching import Launched, ended_by
from mle_ideator.sandboxes.placement import Placement
from mle_ideator.sandboxes.reader import PipeReader
from mle_ideator.sandboxes.threads import at_once
from mle_ideator.waiting import first_of

START_TIMEOUT_S = 60.0
_SOFT_END_S = 0.7
"""Then everything is ended, which takes longer to start again."""
_ANSWER_S = 0.5
_LARGEST_CODE = 255
_MOST_TOLD = 10
"""Of the jobs that end within a cell; more are counted."""
_REPORT = re.compile(rb"([a-z]{1,20})((?: -?\d{1,10})*)\n")
_CLEAR_S = 10.0


class Keeper:
    """Starts kernels, one at a time, and ends them. `gone` is done, with why, once it is.

    `kill` ends all in the sandbox at once, where there is such a means. It blocks.
    """

    def __init__(
        self, launched: Launched, reader: PipeReader, kill: Callable[[], None] | None = None
    ) -> None:
        self._launched, self._reader, self._kill = launched, reader, kill
        self._cleanup = AsyncExitStack()
        self._chain: set[int] = set()
        self._kernel = 0
        self._answers: dict[int, asyncio.Future[list[int]]] = {}
        self._asked = 0
        self._ended_jobs: list[tuple[int, int]] = []
        self._more_ended = 0
        loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] = loop.create_future()
        self.gone: asyncio.Future[str] = loop.create_future()
        self.kernel_ended: asyncio.Future[str] = loop.create_future()

    async def start(self, placement: Placement) -> None:
        """Start it. Raises `SandboxError` with what was written meanwhile."""
        self.folder = placement.seen_as
        self._cleanup.push_async_callback(self._launched.end)
        if self._kill is not None:  # a supervisor may be too slow for a fork bomb
            self._cleanup.push_async_callback(at_once, self._kill)
        await self._launched.start(placement, self._reader.writing_end)
        listening = asyncio.create_task(self._listen())
        self._cleanup.push_async_callback(_cancelled, listening)
        await first_of(self._ready, self.gone, timeout_s=START_TIMEOUT_S)
        if not self._ready.done():
            raise self.not_started()
        self._chain = set(processes.descendants(self._launched.pid))

    async def start_kernel(self, connection: Mapping[str, Any], folder: str) -> None:
        """Fork a kernel that listens where `connection` says. Raises `SandboxError`."""
        self.kernel_ended = asyncio.get_running_loop().create_future()
        command = {"do": "kernel", "connection": dict(connection), "folder": folder}
        inside = await self._answer(command, START_TIMEOUT_S)
        if inside is None:
            raise self.not_started()
        below = processes.descendants(self._launched.pid)
        self._kernel = self._host_pid(inside[0], below)

    def signal_kernel(self, number: signal.Signals) -> None:
        self._send({"do": "signal", "signal": int(number)})

    async def end_kernel(self) -> bool:
        """End it and what it left behind but jobs; false if all must be ended for that."""
        ended = await self._answer({"do": "end"}, _SOFT_END_S)
        self._kernel = 0
        return ended is not None

    async def clear(self) -> bool:
        """End all but the keeper, jobs included, and empty what agent code could write to, the
        workspace apart, in a container; false if that did not work."""
        cleared = await self._answer({"do": "clear"}, _CLEAR_S)
        self._kernel = 0
        return cleared == [0]

    @property
    def trusted(self) -> set[int]:
        """Processes in the sandbox that run no agent code."""
        return self._chain

    def agents(self) -> list[processes.Process]:
        """What agent code has started and still runs, kernel apart, to be told."""
        known = self._chain | {self._kernel}
        below = (pid for pid in processes.descendants(self._launched.pid) if pid not in known)
        found = processes.described(below)
        return [p for p in found if not self.is_helper(p)]

    def started(self, before: Collection[int] = ()) -> set[int]:
        """Ids of what agent code has started and still runs, without those of `before`; but the
        kernel's own children (workers, say) are always among them. Quick, whatever they do."""
        below = processes.descendants(self._launched.pid)
        own = processes.children(self._kernel) if self._kernel else []
        found = {*below}.difference(self._chain, {self._kernel}, before).union(own)
        return {pid for pid in found if processes.lives(pid)}

    def is_helper(self, process: processes.Process) -> bool:
        """Python's own, which the kernel needs as long as it lives."""
        return processes.is_tracker(process, self._kernel)

    def signal_agents(self, pids: Collection[int], how: signal.Signals) -> None:
        """Those of them that still run in the sandbox."""
        root = self._launched.pid
        processes.kill(pids, how, still=lambda pid: processes.is_below(pid, root))

    async def jobs(self) -> set[int]:
        """Running jobs, and scripts that they have started: all below these is theirs."""
        roots = await self._answer({"do": "protect"}, _ANSWER_S) or []
        below = processes.descendants(self._launched.pid) if roots else []
        return {self._host_pid(root, below) for root in roots} - {0}

    def ended_jobs(self) -> tuple[list[tuple[int, int]], int]:
        """Numbers and exit codes of jobs that have ended since the last time, and how many more
        have."""
        ended, more = self._ended_jobs, self._more_ended
        self._ended_jobs, self._more_ended = [], 0
        return ended, more

    def not_started(self, why: str | None = None) -> SandboxError:
        """Why a start came to nothing."""
        if why is None:
            why = self.gone.result() if self.gone.done() else f"no reply in {START_TIMEOUT_S:.0f} s"
        said, _ = self._reader.take()
        said = said.strip()[-2000:] or "nothing"
        return SandboxError(f"the kernel did not start: {why}. It wrote: {said}")

    async def close(self) -> None:
        """End everything in the sandbox and wait until it is gone."""
        await self._cleanup.aclose()
        self.gone.cancel()
        self.kernel_ended.cancel()

    # ------------------------------------------------------------------------- its parts

    def _host_pid(self, inside: int, among: Any) -> int:
        """A process by the id that it has in the sandbox; 0 if it has ended."""
        described = (processes.describe(pid) for pid in reversed(list(among)))
        return next((p.pid for p in described if p and p.pid_inside == inside), 0)

    async def _answer(self, command: dict[str, Any], timeout_s: float) -> list[int] | None:
        """The numbers of its answer; `None` if there is none in time."""
        self._asked = number = self._asked + 1
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        try:
            self._send({**command, "id": number})
            await first_of(answer, self.gone, timeout_s=timeout_s)
            return answer.result() if answer.done() else None
        finally:
            del self._answers[number]

    def _send(self, command: dict[str, Any]) -> None:
        self._launched.send(json.dumps(command).encode() + b"\n")

    async def _listen(self) -> None:
        async for line in self._launched.reports():
            if found := _REPORT.fullmatch(line):
                self._take(found[1].decode(), [int(number) for number in found[2].split()])
        self._end("it lost its supervisor")

    def _take(self, word: str, values: list[int]) -> None:
        match word, values:
            case "exit", [code] if abs(code) <= _LARGEST_CODE:
                _set(self.kernel_ended, ended_by(code))
            case "gone", [code]:
                self._end(f"its keeper ended: {ended_by(code)}")
            case "job", [number, code]:
                if len(self._ended_jobs) < _MOST_TOLD:
                    self._ended_jobs.append((number, code))
                else:
                    self._more_ended += 1
            case "ready", [] if not self._ready.done():
                self._ready.set_result(None)
            case "kernel" | "ended" | "protected" | "cleared", [asked, *told]:
                if (answer := self._answers.get(asked)) and not answer.done():
                    answer.set_result(told)

    def _end(self, why: str) -> None:
        _set(self.gone, why)
        _set(self.kernel_ended, why)


def _set(future: asyncio.Future[str], value: str) -> None:
    if not future.done():
        future.set_result(value)


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
