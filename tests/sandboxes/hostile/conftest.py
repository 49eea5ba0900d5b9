"""One sandbox with small bounds for a whole module, and canaries on the machine around it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest_asyncio

from mle_ideator.protocols import Sandbox, SandboxFactory, SandboxLimits, SandboxRequest
from mle_ideator.types import Execute, Execution, SandboxLimit
from tests.processes import children
from tests.sandboxes.hostile.host import Host
from tests.sandboxes.hostile.table import Cell, Left, Seen

LIMITS = SandboxLimits(
    memory_gib=0.75, processes=100, disk_gib=0.25, file_gib=0.1, output_chars=20_000
)
GRACE_S = 5.0
_LONGEST_NOTE = 3000
_WORDS = {"memory": "memory", "processes": "processes", "disk": "disk"}
"""By which a sandbox says in `covers` what it limits."""


class Ground:
    """A sandbox that is opened anew where a cell broke it, and the host that must not notice."""

    def __init__(self, factory: SandboxFactory, request: SandboxRequest) -> None:
        self._factory, self._request = factory, request
        self._opened = AsyncExitStack()
        self.workspace = Path(request.workspace)
        self.host = Host(self.workspace.parent, Path(request.inputs))

    async def open(self) -> None:
        self.sandbox: Sandbox = await self._opened.enter_async_context(self._factory(self._request))
        self.kind = self.sandbox.info.kind

    async def close(self) -> None:
        await self._opened.aclose()

    def holds(self, bound: SandboxLimit) -> bool:
        limits = [line for line in self.sandbox.info.covers if line.startswith("limits")]
        return any(_WORDS.get(bound, "") in line for line in limits)

    def left_out(self, cell: Cell) -> Left | None:
        """Why the cell is not for this sandbox."""
        expected = cell.expected(self.kind)
        if isinstance(expected, Left):
            return expected
        missing = [bound for bound in cell.needs if not self.holds(bound)]
        return Left(f"{missing[0]} is not limited", missing[0]) if missing else None

    async def run(self, cell: Cell) -> list[str]:
        """What was otherwise than it must be, for the cell and those after it."""
        expected = cell.expected(self.kind)
        assert isinstance(expected, Seen)
        execution, took = await self.execute(
            Execute(cell.language, self.host.fill(cell.code)), cell.limit_s
        )
        faults = expected.faults(execution)
        if took > cell.limit_s + GRACE_S:
            faults.append(f"took {took:.1f} s, the limit is {cell.limit_s} s")
        if not expected.secrets:
            faults += [f"leaked: {name}" for name in self.host.leaked(_all_text(execution))]
            faults += [f"contacted: {name}" for name in self.host.contacted()]
        faults += self.host.harm()
        if len(execution.note) > _LONGEST_NOTE:
            faults.append(f"a note of {len(execution.note)} characters")
        if faults:
            faults.append(f"{execution}"[:3000])
        await asyncio.sleep(cell.settle_s)
        for following in cell.then:
            faults += [f"{following.name}: {fault}" for fault in await self.run(following)]
        return faults

    async def execute(self, action: Execute, limit_s: float) -> tuple[Execution, float]:
        start = time.monotonic()
        execution = await asyncio.wait_for(self.sandbox.execute(action, limit_s), limit_s + 60)
        return execution, time.monotonic() - start

    async def renew(self) -> None:
        """A new kernel, by the means that agent code has; else a new sandbox."""
        for action in (
            Execute("bash", "kill -9 $PPID"),
            Execute("python", "import os; os._exit(0)"),
        ):
            if (await self.execute(action, 3))[0].status == "died":
                return
        await self.reopen()

    async def reopen(self) -> None:
        await self._opened.aclose()
        await self.open()

    async def fails(self) -> list[str]:
        """What is wrong with the next cells, of Python and of bash."""
        faults = []
        for language, code in (("python", "print(6 * 7)"), ("bash", "echo $((6 * 7)); pwd -P")):
            execution, took = await self.execute(Execute(language, code), 15)  # type: ignore[arg-type]
            lines = execution.text.splitlines()
            if execution.status != "ok" or "42" not in lines or took > 15:
                faults.append(f"the next cell of {language}: {execution}"[:2000])
        return faults


def _open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 as fast as can be


def _all_text(execution: Execution) -> str:
    return f"{execution.text}\n{execution.note}"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ground(
    factory: SandboxFactory, make_request: Callable[..., SandboxRequest]
) -> AsyncIterator[Ground]:
    """Nothing of it may be left at the end: no process, no descriptor."""
    ground = Ground(factory, make_request(limits=LIMITS))
    try:
        before = children()
        await ground.open()
        descriptors = _open_descriptors()
        yield ground
        harm = ground.host.harm()
        await ground.close()
        left = children() - before
        assert not harm
        assert not left
        assert _open_descriptors() <= descriptors
    finally:
        await ground.close()
        ground.host.close()
