"""Every hostile cell on every sandbox: the right observation, in time, nothing touched outside it,
and the next cell works."""

from __future__ import annotations

import pytest

from mle_ideator.types import Execute
from tests.sandboxes.hostile import (
    cells_endings,
    cells_keeper,
    cells_leftovers,
    cells_output,
    cells_resources,
    cells_runtime,
    cells_secrets,
    cells_walls,
)
from tests.sandboxes.hostile.conftest import Ground
from tests.sandboxes.hostile.table import Cell

THEMES = (
    cells_endings,
    cells_output,
    cells_resources,
    cells_walls,
    cells_secrets,
    cells_runtime,
    cells_leftovers,
)
CELLS = [cell for theme in THEMES for cell in theme.CELLS]
pytestmark = pytest.mark.asyncio(loop_scope="module")


def marked(cells: list[Cell]) -> list[object]:
    slow = pytest.mark.slow
    return [pytest.param(c, id=c.name, marks=[slow] if c.slow else []) for c in cells]


@pytest.mark.parametrize("cell", marked(CELLS))
async def test_a_hostile_cell(ground: Ground, cell: Cell) -> None:
    if left := ground.left_out(cell):
        told = " ".join(ground.sandbox.info.does_not_cover)
        assert left.told in told, f"{ground.kind} does not say that it does not cover {left.told}"
        pytest.skip(f"{ground.kind}: {left.reason}")
    faults = await ground.run(cell)
    if cell.restart:
        await ground.renew()
    if broken := await ground.fails():
        faults += broken
        await ground.reopen()
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("cell", marked(list(cells_keeper.CELLS)))
async def test_a_cell_against_the_keeper(ground: Ground, cell: Cell) -> None:
    execution, _ = await ground.execute(Execute("bash", "echo $MLE_IDEATOR_KEEPER"), 10)
    if not execution.text.strip():
        pytest.skip(f"{ground.kind}: it has no keeper")
    await test_a_hostile_cell(ground, cell)


async def test_there_are_enough_and_each_has_a_name_of_its_own() -> None:
    assert len(CELLS) >= 75
    assert len({cell.name for cell in CELLS}) == len(CELLS)
