"""The engine that all sandboxes here share: one Jupyter kernel, its cells, its replacements.

A backend is a subclass that says how to start one process (`_place`), what that covers, and
whether it can work on this machine (`unavailable`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self, cast

import msgspec

from mle_ideator.errors import SandboxError
from mle_ideator.protocols import SandboxRequest
from mle_ideator.sandboxes import notes, warm
from mle_ideator.sandboxes.cell import Cell
from mle_ideator.sandboxes.commands import put_commands
from mle_ideator.sandboxes.environment import environment
from mle_ideator.sandboxes.facts import sandbox_info
from mle_ideator.sandboxes.interior import Interior
from mle_ideator.sandboxes.keeping import Keeper
from mle_ideator.sandboxes.launching import HostProcess, Launched
from mle_ideator.sandboxes.limits.control_groups import ControlGroup, why_not
from mle_ideator.sandboxes.limits.control_groups import remove_leftovers as remove_groups
from mle_ideator.sandboxes.limits.group_reader import GroupReader
from mle_ideator.sandboxes.limits.rlimits import rlimits
from mle_ideator.sandboxes.limits.watching import Watch
from mle_ideator.sandboxes.placement import Placement
from mle_ideator.sandboxes.private import OUTPUT, PrivateFolder, remove_leftovers
from mle_ideator.sandboxes.reader import PipeReader
from mle_ideator.sandboxes.running import RunningKernel
from mle_ideator.sandboxes.threads import at_once, in_thread
from mle_ideator.sandboxes.trees import empty_folder, make_usable
from mle_ideator.sandboxes.workspaces.tracked import TrackedWorkspace
from mle_ideator.types import Execute, Execution, SandboxInfo
from mle_ideator.waiting import finish

_log = logging.getLogger(__name__)

_BACKGROUND_SHARE = 0.2
"""Of a cell's text, for what background work wrote since the last cell."""
_MOST_DEATHS = 3
"""Kernels that die in a row."""
_INPUT = "input"


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
        self._group: ControlGroup | None = None
        self._files = TrackedWorkspace(self._workspace, apart=(_INPUT,))
        self._cold_start: str | None = None
        self._cpu_s: dict[int, float] = {}
        self._deaths = 0
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

    @classmethod
    def anticipate(cls, threads: int, gpus: str | None, preload: tuple[str, ...]) -> None:
        """Begin to import what kernels are to have, in the background."""
        nobody = environment(
            home="", temporary="", commands="", threads=threads, mark="", gpus=gpus
        )
        warm.anticipate(nobody, preload)

    def _launch(self, placement: Placement) -> Launched:
        """What starts the supervisor: a warm process where that can be had. Blocks."""
        try:
            if placement.wrapper and placement.walls is None:
                raise SandboxError("it is started by a command of its own")
            server = warm.fork_server(placement.environment, placement.preload)
        except SandboxError as error:
            self._cold_start = str(error)
            return HostProcess()
        self._cold_start = None
        return warm.ForkedProcess(server)

    def _prepare(self) -> None:  # noqa: B027 most backends need nothing
        """Before the first kernel: whatever the backend needs on this machine."""

    def _mend_inputs(self) -> list[str]:
        """After a cell: put changed inputs back; returns what is to be said of it. Blocks."""
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
            "groups": tuple(map(str, self._group.entrances)) if self._group else (),
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
        if not self._open:
            return ()
        if self._group is not None:
            held = self._request.limits.cpus is None or self._group.holds_cpus
            return () if held else ("share of processor time: this machine lets nobody ration it",)
        return (
            "memory and number of processes: looked at several times a second, not held by the "
            "system, so a sudden rise comes through; of files in memory (/dev/shm, memfd), only "
            f"what a process has mapped is counted ({why_not()})",
        )

    async def __aenter__(self) -> Self:
        if reason := await in_thread(self.unavailable):
            raise SandboxError(f"the {self.kind} sandbox can not be used here: {reason}")
        if not self._inputs.is_dir():
            raise SandboxError(f"the folder with the inputs does not exist: {self._inputs}")
        await self._furnish()
        self._open = True
        return self

    async def _furnish(self) -> None:
        self._private = PrivateFolder()
        self._reader = PipeReader(
            self._private.path / OUTPUT, int(_BACKGROUND_SHARE * self._request.limits.output_chars)
        )
        self._interior = Interior(self._private.kernels, self._start_keeper)
        try:
            await finish(in_thread(self._make))
            clearing = asyncio.create_task(in_thread(_remove_leftovers))  # here it delays nothing
            try:
                await self._interior.start()
            finally:
                await asyncio.wait({clearing})
        except BaseException:
            await finish(self._close())
            raise

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
                kernel = self._interior.kernel or await self._restart()
            except SandboxError as error:
                execution = _not_run(time.monotonic() - started, str(error))
            else:
                watch = cast(Watch, self._interior.watch)
                limits = self._request.limits
                cell = Cell(self._interior, kernel, watch, self._reader, limits, self._mend)
                execution = await cell.run(action, timeout_s)
                news += await self._end_what_kills(execution)
            note = "\n".join(filter(None, [*news, execution.note]))
            return msgspec.structs.replace(execution, note=note)

    async def _end_what_kills(self, execution: Execution) -> list[str]:
        """Jobs live on when a kernel dies, but not those that end one kernel after the other."""
        self._deaths = self._deaths + 1 if execution.status == "died" else 0
        if self._deaths < _MOST_DEATHS:
            return []
        self._deaths = 0
        await self._interior.drop_keeper()
        return [notes.KERNELS_DIED]

    async def snapshot(self, folder: Path) -> None:
        """Keep the workspace, without its inputs, as a new folder."""
        async with self._turn():
            await finish(in_thread(self._files.snapshot, folder))

    async def restore(self, folder: Path) -> None:
        """Make the workspace what it was at a snapshot, and start a new kernel."""
        async with self._turn():
            await finish(self._forget())
            await finish(in_thread(self._files.restore, folder))
            await self._restart()

    # ------------------------------------------------------------------------- its parts

    async def _forget(self) -> None:
        """Let nothing remain of what ran but the workspace: the next keeper gets new walls."""
        await self._interior.drop_keeper()
        await self._interior.ended()
        private = self._private
        for folder in (private.home, private.temporary, private.kernels):
            await in_thread(empty_folder, folder)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """One thing at a time."""
        if not self._open:
            raise SandboxError("the sandbox is not open: use it within `async with`")
        async with self._one_at_a_time:
            yield

    async def _start_keeper(self, interior: Interior) -> None:
        placement = self._placement = self._place()
        put_commands(self._private.commands, placement.python, placement.programs)
        launched = await finish(in_thread(self._launch, placement))
        try:
            await self._put_in(interior, launched, placement)
        except (SandboxError, OSError) as error:
            if not isinstance(launched, warm.ForkedProcess):
                raise
            await interior.drop_keeper()
            await interior.ended()
            await self._put_in(interior, HostProcess(), placement)
            self._cold_start = f"a fork did not start: {error}"
            warm.do_without(placement.environment, placement.preload, self._cold_start)

    async def _put_in(self, interior: Interior, launched: Launched, placement: Placement) -> None:
        """A keeper, started by what was launched, and a watch."""
        kill = self._group.kill if self._group else None
        interior.keeper = keeper = Keeper(launched, self._reader, kill)
        await keeper.start(placement)
        private = self._private
        watch = Watch(
            self._request.limits,
            root_pid=lambda: launched.pid,
            group=self._group_of(launched),
            folders=(self._workspace, private.home, private.temporary, private.kernels),
            without=(self._workspace / _INPUT,),
            trusted=lambda: keeper.trusted,
            cpu_s=self._cpu_s,
        )
        interior.watch_over(watch)

    async def _restart(self) -> RunningKernel:
        await finish(at_once(self._put_right))
        return await self._interior.start()

    def _put_right(self) -> None:
        """Folders that the last kernel may have closed, removed or replaced. Blocks."""
        try:
            self._private.make_usable()
            make_usable(self._workspace)
            placement = self._placement
            put_commands(self._private.commands, placement.python, placement.programs)
        except OSError as error:
            raise SandboxError(str(error)) from error
        self._mend_inputs()

    async def _mend(self) -> list[str]:
        return await at_once(self._mended)

    def _mended(self) -> list[str]:
        with suppress(OSError):
            make_usable(self._workspace)
        return self._mend_inputs()

    async def _catch_up(self) -> list[str]:
        """What happened since the last cell."""
        interior = self._interior
        interior.go_on_watching()
        if interior.watch is not None and interior.watch.breached.done():
            await interior.drop_keeper()
            return [notes.stopped_before(interior.watch.breached.result().words)]
        if interior.kernel is None or not interior.kernel.ended.done():
            return []
        why = interior.kernel.ended.result()
        await interior.drop_kernel()
        return [notes.died_before(why)]

    async def _close(self) -> None:
        """Never raises: what can not be cleared away must not hide how the session ended."""
        try:
            async with AsyncExitStack() as ending:
                ending.push_async_callback(in_thread, self._private.remove)
                if self._group is not None:
                    ending.push_async_callback(in_thread, self._group.remove)
                ending.push_async_callback(self._close_files)
                ending.callback(self._reader.close)
                ending.push_async_callback(self._interior.ended)
                ending.push_async_callback(self._interior.drop_keeper)
        except Exception as error:
            _log.warning("the sandbox was not cleared away in full: %r", error)

    async def _close_files(self) -> None:
        await in_thread(self._files.close, keep=self._request.keep)


def _remove_leftovers() -> None:
    """Of runtimes that were killed before they could clear away."""
    remove_leftovers()
    remove_groups()


def _not_run(duration_s: float, why: str) -> Execution:
    return Execution(status="died", text="", duration_s=duration_s, note=notes.not_started(why))
