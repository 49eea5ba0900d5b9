"""The engine that all sandboxes here share: one Jupyter kernel, its cells, its replacements.

A backend is a subclass that says how to start one process (`_place`), what that covers, and
whether it can work on this machine (`unavailable`).
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self, cast

import msgspec

from mle_ideator.errors import SandboxError
from mle_ideator.protocols import SandboxRequest
from mle_ideator.sandboxes import notes, processes
from mle_ideator.sandboxes.commands import put_commands
from mle_ideator.sandboxes.control_groups import (
    ControlGroup,
    why_not,
)
from mle_ideator.sandboxes.control_groups import (
    remove_leftovers as remove_groups,
)
from mle_ideator.sandboxes.facts import bound_bytes, sandbox_info
from mle_ideator.sandboxes.group_reader import GroupReader
from mle_ideator.sandboxes.keeping import Keeper
from mle_ideator.sandboxes.launching import HostProcess, Launched, ended_by
from mle_ideator.sandboxes.placement import Placement
from mle_ideator.sandboxes.private import OUTPUT, PrivateFolder, remove_leftovers
from mle_ideator.sandboxes.reader import PipeReader
from mle_ideator.sandboxes.reply import Reply
from mle_ideator.sandboxes.rlimits import rlimits
from mle_ideator.sandboxes.running import RunningKernel
from mle_ideator.sandboxes.trees import make_usable, remove_tree
from mle_ideator.sandboxes.warm import ForkedProcess, fork_server
from mle_ideator.sandboxes.watching import Watch
from mle_ideator.sandboxes.workspaces import TrackedWorkspace
from mle_ideator.types import Execute, Execution, SandboxInfo, SandboxLimit, Status
from mle_ideator.waiting import finish, first_of

_log = logging.getLogger(__name__)

_BACKGROUND_SHARE = 0.2
"""Of a cell's text, for what background work wrote since the last cell."""


_INPUT = "input"
_BY_SIGNAL: dict[int, SandboxLimit] = {signal.SIGXCPU: "cpu_time", signal.SIGXFSZ: "file_size"}


@dataclass
class _Ended:
    """How a cell ended."""

    status: Status
    lines: list[str]
    limits: list[SandboxLimit] = field(default_factory=list)


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
        self._keeper: Keeper | None = None
        self._kernel: RunningKernel | None = None
        self._watch: Watch | None = None
        self._watching: asyncio.Task[None] | None = None
        self._group: ControlGroup | None = None
        self._files = TrackedWorkspace(self._workspace, apart=(_INPUT,))
        self._cold_start: str | None = None
        self._open = False
        self._one_at_a_time = asyncio.Lock()

    # ------------------------------------------------------------------- for backends

    @classmethod
    @abstractmethod
    def unavailable(cls) -> str | None:
        """Why it can not work on this machine and how to mend that, or `None`."""

    @abstractmethod
    def _place(self) -> Placement:
        """How to start the keeper. Called again if it has to be started anew."""

    def _launch(self, placement: Placement) -> Launched:
        """What starts the supervisor: a warm process where that can be had. Blocks."""
        try:
            server = fork_server(placement.environment, placement.preload)
        except SandboxError as error:
            self._cold_start = str(error)
            return HostProcess()
        return ForkedProcess(server)

    def _prepare(self) -> None:  # noqa: B027 most backends need nothing
        """Before the first kernel: whatever the backend needs on this machine."""

    def _mend_inputs(self) -> list[str]:
        """After a cell: put changed inputs back; returns what is to be said of it."""
        return []

    def _new_group(self) -> ControlGroup | None:
        """The control group for this sandbox, if there is to be one."""
        return ControlGroup.create(self._request.limits)

    def _group_of(self, launched: Launched) -> GroupReader | None:
        """The control group that holds what was launched, if there is one."""
        return self._group

    def _confinement(self) -> dict[str, Any]:
        """The part of a `Placement` that limits what runs there."""
        grouped = self._group is not None
        return {
            "rlimits": rlimits(self._request.limits, grouped=grouped),
            "groups": tuple(map(str, self._group.procs)) if self._group else (),
            "preload": self._request.preload,
        }

    # ------------------------------------------------------------------------- Sandbox

    @property
    def info(self) -> SandboxInfo:
        return sandbox_info(
            self.kind,
            self.network,
            self.covers,
            self.does_not_cover + self._not_held(),
            self._cold_start,
            self._request,
        )

    def _not_held(self) -> tuple[str, ...]:
        """Limits that this machine can not hold well, and why."""
        if not self._open or self._group is not None:
            return ()
        return (
            "memory and number of processes: looked at several times a second, not held by the "
            f"system, so a sudden rise comes through ({why_not()})",
        )

    async def __aenter__(self) -> Self:
        if reason := self.unavailable():
            raise SandboxError(f"the {self.kind} sandbox can not be used here: {reason}")
        if not self._inputs.is_dir():
            raise SandboxError(f"the folder with the inputs does not exist: {self._inputs}")
        await asyncio.to_thread(_remove_leftovers)
        self._private = PrivateFolder()
        self._reader = PipeReader(
            self._private.path / OUTPUT, int(_BACKGROUND_SHARE * self._request.limits.output_chars)
        )
        try:
            await finish(asyncio.to_thread(self._make))
            await self._start_kernel()
        except BaseException:
            await finish(self._close())
            raise
        self._open = True
        return self

    def _make(self) -> None:
        snapshot = self._request.snapshot
        self._files.open(Path(snapshot) if snapshot else None)
        self._group = self._new_group()
        self._prepare()

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
        async with self._turn():
            news = await self._catch_up()
            started = time.monotonic()
            try:
                kernel = self._kernel or await self._restart_kernel()
            except SandboxError as error:
                execution = _not_run(time.monotonic() - started, str(error))
            else:
                execution = await self._run(kernel, action, timeout_s)
            note = "\n".join(filter(None, [*news, execution.note]))
            return msgspec.structs.replace(execution, note=note)

    async def snapshot(self, folder: Path) -> None:
        """Keep the workspace, without its inputs, as a new folder."""
        async with self._turn():
            await finish(asyncio.to_thread(self._files.snapshot, folder))

    async def restore(self, folder: Path) -> None:
        """Make the workspace what it was at a snapshot, and start a new kernel."""
        async with self._turn():
            await finish(self._empty())
            await finish(asyncio.to_thread(self._files.restore, folder))
            await self._restart_kernel()

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """One thing at a time."""
        if not self._open:
            raise SandboxError("the sandbox is not open: use it within `async with`")
        async with self._one_at_a_time:
            yield

    # ------------------------------------------------------------------------ one cell

    async def _run(self, kernel: RunningKernel, action: Execute, timeout_s: float) -> Execution:
        assert self._watch is not None  # noqa: S101 it starts with the keeper
        self._watch.begin()
        before = {process.pid for process in self._agents()}
        earlier, earlier_dropped = self._reader.take()
        self._reader.begin(self._request.limits.output_chars - len(earlier))
        started = time.monotonic()
        reply = kernel.ask(action)
        try:
            await first_of(reply, kernel.ended, self._watch.breached, timeout_s=timeout_s)
        except asyncio.CancelledError:
            await finish(self._stop(kernel, reply, before))
            raise
        duration = time.monotonic() - started
        ended = await finish(self._conclude(kernel, reply, before, duration, timeout_s))
        ended.lines += self._mend()
        text, dropped = self._reader.take()
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
        self,
        kernel: RunningKernel,
        reply: asyncio.Task[Reply],
        before: set[int],
        duration: float,
        timeout_s: float,
    ) -> _Ended:
        watch = cast(Watch, self._watch)
        breach = watch.breached.result() if watch.breached.done() else None
        await watch.settle()
        hits = watch.hits()
        if reply.done():
            said = reply.result()
            ended = _Ended(said.status, notes.exit_code(said.exit_code))
        elif kernel.ended.done():
            reply.cancel()
            ended = await self._died(kernel, any(limit == "memory" for limit, _ in hits))
        elif breach is not None:
            killed = await self._stop(kernel, reply, set(), jobs=False)
            state = notes.state(kept=self._kernel is kernel)
            ended = _Ended("limit", [breach.words, state, *notes.ended(killed)], [breach.limit])
        else:
            killed = await self._stop(kernel, reply, before)
            words = notes.timeout(duration, timeout_s, kept=self._kernel is kernel)
            ended = _Ended("timeout", [words, *notes.ended(killed)], ["wall_time"])
        if breach is not None:
            watch.begin()  # it has been dealt with
        ended.lines += [words for _, words in hits]
        ended.limits += [limit for limit, _ in hits]
        if "processes" in ended.limits and self._keeper is not None:
            ended.lines += notes.ended(await _end_agents(self._keeper, before, spare_jobs=True))
        ended.lines += self._news()
        return ended

    async def _died(self, kernel: RunningKernel, out_of_memory: bool) -> _Ended:
        why = kernel.ended.result()
        if out_of_memory:
            why = notes.out_of_memory(bound_bytes(self._request.limits))
        await self._drop_kernel()
        limits = [limit for number, limit in _BY_SIGNAL.items() if why == f"signal {int(number)}"]
        return _Ended("died", [notes.died(why)], limits)

    async def _stop(
        self,
        kernel: RunningKernel,
        reply: asyncio.Task[Reply],
        before: set[int],
        *,
        jobs: bool = True,
    ) -> list[processes.Process]:
        """Interrupt, terminate, kill. What earlier cells left behind lives if the kernel does, and
        jobs do unless they are to be ended, too."""
        if await kernel.interrupt(reply) and self._keeper is not None:
            return await _end_agents(self._keeper, before, jobs)
        reply.cancel()
        await kernel.terminate()
        await self._drop_kernel()
        if not jobs:
            await self._drop_keeper()
        return []

    def _news(self) -> list[str]:
        """What goes on beside the cell."""
        if self._keeper is None:
            return []
        ended = [notes.job_ended(number, code) for number, code in self._keeper.ended_jobs()]
        return [*ended, *notes.still_running(self._keeper.agents())]

    def _agents(self) -> list[processes.Process]:
        return self._keeper.agents() if self._keeper else []

    # ------------------------------------------------------------------------- kernels

    async def _start_kernel(self) -> RunningKernel:
        if self._keeper is not None:
            with suppress(SandboxError):  # full memory or many processes may leave no room for it
                return await self._start_one()
        return await self._start_one()

    async def _start_one(self) -> RunningKernel:
        try:
            keeper = self._keeper or await self._start_keeper()
            self._kernel = kernel = RunningKernel(keeper)
            await kernel.start(self._private.kernels)
        except BaseException as error:
            await self._drop_kernel()
            await self._drop_keeper()
            if isinstance(error, OSError):
                raise SandboxError(f"the kernel did not start: {error}") from error
            raise
        return kernel

    async def _start_keeper(self) -> Keeper:
        placement = self._place()
        if not self._private.commands.exists():
            put_commands(self._private.commands, placement.python, placement.programs)
        launched = await finish(asyncio.to_thread(self._launch, placement))
        self._keeper = keeper = Keeper(launched, self._reader, ended_by)
        await keeper.start(placement)
        self._watch = Watch(
            self._request.limits,
            root_pid=lambda: launched.pid,
            group=self._group_of(launched),
            folders=(self._workspace, self._private.home, self._private.temporary),
            without=(self._workspace / _INPUT,),
            trusted=lambda: keeper.trusted,
        )
        self._watching = asyncio.create_task(self._watch.run())
        return keeper

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

    async def _catch_up(self) -> list[str]:
        """What happened since the last cell."""
        if self._watch is not None and self._watch.breached.done():
            await self._drop_kernel()
            await self._drop_keeper()
            return [notes.stopped_before(self._watch.breached.result().words)]
        if self._kernel is None or not self._kernel.ended.done():
            return []
        why = self._kernel.ended.result()
        await self._drop_kernel()
        return [notes.died_before(why)]

    async def _empty(self) -> None:
        """End all that runs; home and temporary files are as new."""
        if self._kernel is not None:
            await self._kernel.close()
            self._kernel = None
        if self._keeper is None or not await self._keeper.clear():
            await self._drop_keeper()
            for folder in (self._private.home, self._private.temporary):
                remove_tree(folder)
                make_usable(folder)

    async def _drop_kernel(self) -> None:
        """End the kernel and what it left behind; all that runs, if it can not be done without."""
        kernel, self._kernel = self._kernel, None
        if kernel is not None:
            await finish(kernel.close())
        if self._keeper is not None and not await finish(self._keeper.end_kernel()):
            await self._drop_keeper()

    async def _drop_keeper(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            if self._watching is not None:
                self._watching.cancel()
            await finish(keeper.close())

    async def _close(self) -> None:
        """Never raises: what can not be cleared away must not hide how the session ended."""
        try:
            async with AsyncExitStack() as ending:
                ending.push_async_callback(asyncio.to_thread, self._private.remove)
                if self._group is not None:
                    ending.push_async_callback(asyncio.to_thread, self._group.remove)
                ending.push_async_callback(asyncio.to_thread, self._files.close)
                ending.callback(self._reader.close)
                if self._kernel is not None:
                    ending.push_async_callback(self._kernel.close)
                ending.push_async_callback(self._drop_keeper)
        except Exception as error:
            _log.warning("the sandbox was not cleared away in full: %r", error)


async def _end_agents(
    keeper: Keeper, before: set[int], spare_jobs: bool
) -> list[processes.Process]:
    """Kill what the stopped cell started, jobs perhaps apart, and the kernel's own workers."""
    killed: dict[int, processes.Process] = {}
    for _ in range(20):
        found = [p for p in keeper.agents() if p.pid not in before or keeper.is_attached(p)]
        jobs = await keeper.jobs() if found and spare_jobs else set()
        found = [process for process in found if process.pid not in jobs]
        if not found:
            break
        processes.kill(process.pid for process in found)
        killed |= {process.pid: process for process in found}
    return list(killed.values())


def _remove_leftovers() -> None:
    """Of runtimes that were killed before they could clear away."""
    remove_leftovers()
    remove_groups()


def _not_run(duration_s: float, why: str) -> Execution:
    return Execution(status="died", text="", duration_s=duration_s, note=notes.not_started(why))
