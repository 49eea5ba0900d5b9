"""Which runs there are, and what each is a run of."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

from mle_ideator.benchmarks.measures.values import Cell, Contender
from mle_ideator.benchmarks.runner.folders import PLAN, run_folder
from mle_ideator.benchmarks.runner.plan import read_plan
from mle_ideator.benchmarks.runner.states import read_state
from mle_ideator.benchmarks.running import CONFIG
from mle_ideator.journal import FILE

log = logging.getLogger(__name__)

DEPTH = 6
"""Folders below the given one in which runs are looked for."""


class Found(NamedTuple):
    """A run folder, and what it is a run of."""

    folder: Path
    cell: Cell


def expected_cells(root: Path) -> tuple[Cell, ...]:
    """What `bench run` was asked for; nothing for a folder that it did not make."""
    return tuple(read_plan(root).cells()) if (root / PLAN).is_file() else ()


def found_in(root: Path) -> Iterator[Found]:
    planned = {run_folder(root, cell): cell for cell in expected_cells(root)}
    for folder in sorted(run_folders(root)):
        cell = planned.get(folder) or _cell_said(folder)
        if cell is not None:
            yield Found(folder, cell)


def run_folders(root: Path) -> Iterator[Path]:
    """Every folder in which a session has begun; what lies in those is agents', and let be."""
    for folder, inside, files in os.walk(root):
        depth = len(Path(folder).relative_to(root).parts)
        if FILE in files:
            if (Path(folder) / FILE).stat().st_size:
                yield Path(folder)
            inside.clear()
        elif depth >= DEPTH:
            inside.clear()


def _cell_said(folder: Path) -> Cell | None:
    """What a run's own config says, for runs that no plan knows."""
    try:
        with (folder / FILE).open("rb") as journal:
            started = msgspec.json.decode(journal.readline())
        return cell_of(started["config"])
    except (OSError, msgspec.MsgspecError, KeyError, TypeError):
        pass
    try:
        return cell_of(yaml.safe_load((folder / CONFIG).read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, AttributeError):
        log.warning("%s is no run that can be read; it is left out", folder)
        return None


def given_up_in(root: Path, begun: set[Cell]) -> Iterator[Found]:
    """Cells that failed for good before a session began."""
    for cell in expected_cells(root):
        if cell not in begun and read_state(root, cell).status == "failed":
            yield Found(run_folder(root, cell), cell)


def cell_of(config: dict[str, Any]) -> Cell:
    """What a run's config says that it is a run of; a person's own data go by their file."""
    data = config.get("data") or {}
    return Cell(
        task=config.get("task") or data.get("train", ""),
        contender=Contender(config.get("ideator", ""), config.get("implementer", "")),
        seed=config.get("seed", 0),
    )
