"""The runner's notes: how far each cell is; and the lock that keeps two runners apart.

Notes only save looking: what a run came to is told by its journal.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from mle_ideator.benchmarks.measures.values import Cell
from mle_ideator.benchmarks.runner.folders import LOCK, notes_file, run_folder
from mle_ideator.errors import UsageError
from mle_ideator.files import lock, replace_file
from mle_ideator.results import SUMMARY
from mle_ideator.types import Value

Status = Literal["queued", "running", "done", "failed"]


class CellState(Value, frozen=True, kw_only=True):
    """One cell, as the runner knows it."""

    cell: Cell
    status: Status = "queued"
    attempts: int = 0
    """How often it was begun or gone on with."""
    error: str = ""
    """What broke the last attempt."""
    pid: int | None = None
    """Of the worker that has it."""
    wall_s: float = 0.0
    """Seconds that all attempts took."""


def read_state(results: Path, cell: Cell) -> CellState:
    """What is noted of a cell; nothing is known of one whose notes are gone or unreadable."""
    try:
        content = notes_file(results, cell, ".json").read_bytes()
        state = msgspec.json.decode(content, type=CellState)
    except (OSError, msgspec.MsgspecError):
        return CellState(cell=cell)
    if state.status == "done" and not (run_folder(results, cell) / SUMMARY).exists():
        return CellState(cell=cell)  # somebody wants it to be run anew
    return state


def write_state(results: Path, state: CellState) -> None:
    file = notes_file(results, state.cell, ".json")
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, msgspec.json.encode(state) + b"\n")


@contextmanager
def results_held(results: Path) -> Iterator[None]:
    """Be the only runner of a results folder; of one that was killed nothing is left to clear.

    Raises `UsageError` with the id of the process that runs it.
    """
    with _held(results / LOCK) as other:
        if other is not None:
            raise UsageError(
                f"another `bench run` is at work on {results}: process {other}; wait for it, or "
                "end it first."
            )
        yield


@contextmanager
def cell_held(results: Path, cell: Cell) -> Iterator[bool]:
    """Be the only process that runs a cell; false if another one, left over, still does."""
    file = notes_file(results, cell, ".lock")
    file.parent.mkdir(parents=True, exist_ok=True)
    with _held(file) as other:
        yield other is None


@contextmanager
def _held(file: Path) -> Iterator[str | None]:
    """Hold a lock file; who has it, if another process does. The system lets go of the dead's."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if not lock(descriptor):
            yield os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip() or "unknown"
            return
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        yield None
    finally:
        os.close(descriptor)
