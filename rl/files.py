"""What lies beside a store of help states, by the name of its file."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Files(NamedTuple):
    """Of a store `states.db`."""

    runs: Path
    """`states.runs`: the sessions that it was collected from, a results folder of `bench run`."""
    buffer: Path
    """`states.buffer`: reward statistics, and what was drawn."""
    cache: Path
    """`states.cache`: results of rollouts."""
    packed: Path
    """`states.packed`: help states as single files, for workers; may be deleted."""


def files_of(store: Path) -> Files:
    return Files(*(store.with_suffix(f".{name}") for name in Files._fields))
