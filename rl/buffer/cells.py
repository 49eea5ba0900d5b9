"""Which states stand at which level of potential, by task.

A *cell* holds the rows of one task at one level, in any order: a row is put in, taken out and
picked at random in constant time, however many there are. How many each cell holds is all that a
draw has to look at.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mle_ideator.rl.buffer.curriculum import Counts
from mle_ideator.rl.buffer.rows import Rows


class Cells:
    """The cells of all tasks: `bins` levels of drawable states, and one more of retired ones."""

    def __init__(self, rows: Rows, bins: int) -> None:
        self._rows = rows
        self._bins = bins
        self._counts: Counts = np.zeros((8, bins + 1), np.int64)
        self._cells: dict[tuple[int, int], array[int]] = {}
        self._tasks = 0

    def grow(self, tasks: int) -> None:
        """Make room for so many tasks."""
        while tasks > len(self._counts):
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
        self._tasks = tasks

    @property
    def drawable(self) -> Counts:
        """States by task and level; shape (tasks, bins); a view."""
        return self._counts[: self._tasks, : self._bins]

    @property
    def retired(self) -> Counts:
        """Retired states by task; a view."""
        return self._counts[: self._tasks, self._bins]

    def put(self, row: int, level: int) -> None:
        rows, task = self._rows, self._rows.task[row]
        cell = self._cells.setdefault((task, level), array("i"))
        rows.bin[row], rows.place[row] = level, len(cell)
        cell.append(row)
        self._counts[task, level] += 1

    def take(self, row: int) -> None:
        """The last one of the cell moves to where the row stood."""
        rows = self._rows
        task, level = rows.task[row], rows.bin[row]
        cell = self._cells[task, level]
        last = cell.pop()
        if last != row:
            place = rows.place[row]
            cell[place] = last
            rows.place[last] = place
        self._counts[task, level] -= 1

    def pick(self, task: int, level: int, u: float) -> int | None:
        """The row that `u`, from 0 to below 1, falls on; `None` if the cell is empty."""
        cell = self._cells.get((task, level))
        return cell[int(u * len(cell))] if cell else None

    def first(self, task: int, level: int) -> int:
        return self._cells[task, level][0]

    def dump(self) -> dict[str, npt.NDArray[Any]]:
        """The rows of all cells on end, and each cell's task, level and length."""
        full = [(key, cell) for key, cell in sorted(self._cells.items()) if cell]
        rows = np.frombuffer(b"".join(cell.tobytes() for _, cell in full), np.int32)
        cells = [(task, level, len(cell)) for (task, level), cell in full]
        return {"cell_rows": rows, "cells": np.array(cells, np.int64).reshape(-1, 3)}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        start, rows = 0, state["cell_rows"]
        for task, level, length in state["cells"].tolist():
            cell = array("i")
            cell.frombytes(rows[start : start + length].tobytes())
            self._cells[task, level] = cell
            self._counts[task, level] = length
            start += length
