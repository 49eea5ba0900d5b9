"""Where things lie in a results folder: specs become names of folders, each its own."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from mle_ideator.benchmarks.measures.values import Cell

PLAN, LOCK, RUNS, CELLS, LOGS = "plan.yaml", "lock", "runs", "cells", "logs"
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_KEPT = 48
"""Characters of a spec that can not be a name as it is: its end, which tells most."""


def name_of(spec: str) -> str:
    """A folder's name for a spec: itself where it can be, else its end and a hash."""
    if _PLAIN.fullmatch(spec):
        return spec
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", spec)[-_KEPT:].strip("-.")
    return f"{readable or 'spec'}-{hashlib.sha256(spec.encode()).hexdigest()[:8]}"


def path_of(cell: Cell) -> Path:
    """`TASK/IMPLEMENTER+IDEATOR/seed-N`."""
    pair = f"{name_of(cell.contender.implementer)}+{name_of(cell.contender.ideator)}"
    return Path(name_of(cell.task), pair, f"seed-{cell.seed}")


def run_folder(results: Path, cell: Cell) -> Path:
    """The folder of a cell's run, as `mle-ideator run` makes one."""
    return results / RUNS / path_of(cell)


def notes_file(results: Path, cell: Cell, suffix: str) -> Path:
    """A file of the runner's own about a cell."""
    path = results / CELLS / path_of(cell)
    return path.with_name(path.name + suffix)
