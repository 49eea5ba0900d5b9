"""The resource cells where no control group can be made: bounds of processes and the watcher hold.

Without real bombs: what they come to before they are looked at could harm the tests' machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import pytest
import pytest_asyncio

from mle_ideator.protocols import SandboxFactory, SandboxLimits, SandboxRequest
from mle_ideator.sandboxes.limits.control_groups import ControlGroup
from mle_ideator.types import Execute
from tests.sandboxes.hostile import cells_resources
from tests.sandboxes.hostile.conftest import LIMITS, Ground
from tests.sandboxes.hostile.table import Cell, Seen

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]
_REFUSED = Seen(status=("error", "ok", "limit", "died"), never=("^survived",))
"""By the bound that one process has: its code gets an exception."""
_SEEN = {
    "memory, bit by bit": _REFUSED,
    "memory, all at once": _REFUSED,
    "memory, many processes a bit each": None,
    "threads without end": _REFUSED,
    "many small files": None,
    "a file without a name": None,
    "one file that is too large": None,
    "children that a stopped cell left everywhere": None,
}
CELLS = [
    replace(cell, seen=_SEEN[cell.name] or cell.seen)
    for cell in cells_resources.CELLS
    if cell.name in _SEEN
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def loose(
    factory: SandboxFactory, make_request: Callable[..., SandboxRequest]
) -> AsyncIterator[Ground]:
    """A sandbox on a machine that lets it make no control group."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ControlGroup, "create", classmethod(lambda *_, **__: None))
        ground = Ground(factory, make_request(limits=LIMITS))
        try:
            await ground.open()
            if ground.kind not in ("local", "bubblewrap"):
                pytest.skip(f"{ground.kind}: its groups are not the runtime's")
            yield ground
        finally:
            await ground.close()
            ground.host.close()


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
async def test_a_bound_holds_without_a_control_group(loose: Ground, cell: Cell) -> None:
    assert any("several times a second" in line for line in loose.sandbox.info.does_not_cover)
    if loose.left_out(cell):
        pytest.skip(f"{loose.kind}: left out")
    faults = await loose.run(cell)
    await loose.renew()
    assert not [*faults, *await loose.fails()]


_STOPPED = Seen(status=("limit", "error"), hits=("processes",), note=("processes",))


async def test_a_swarm_is_stopped(loose: Ground) -> None:
    swarm = (
        "import os\nfor _ in range(400):\n    if not os.fork(): os.execlp('sleep', 'sleep', '60')"
    )
    cell = Cell(name="a swarm", code=f"{swarm}\nimport time; time.sleep(9)", seen=_STOPPED)
    assert not [*await loose.run(cell), *await loose.fails()]


async def test_processor_time_is_bounded(
    factory: SandboxFactory, make_request: Callable[..., SandboxRequest]
) -> None:
    """With a control group where one can be made: it needs none."""
    limits = SandboxLimits(cpu_s=2, memory_gib=1, processes=100)
    async with factory(make_request(limits=limits)) as sandbox:
        execution = await sandbox.execute(Execute("python", "while True: pass"), 30)
        assert (execution.status, execution.limits_hit) == ("limit", ("cpu_time",))
        await asyncio.sleep(0.3)
        execution = await sandbox.execute(Execute("bash", "echo 1; while :; do :; done"), 20)
        assert execution.status in ("limit", "died")
        assert "processor time" in execution.note
