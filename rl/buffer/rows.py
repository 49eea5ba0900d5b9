"""What the buffer knows of each help state: one row of columns that grow, found by its id."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mle_ideator.errors import UsageError
from mle_ideator.rl.buffer.curriculum import Statistics

FREE, DRAWABLE, RESTING, RETIRED = range(4)
KINDS = ("draft", "debug", "improve")
MOST = 100
"""Where the small counters stop."""

# Plain arrays: reading one entry takes a third of the time that it takes in numpy.
_COLUMNS = {
    **dict.fromkeys(("task", "place", "due"), "i"),
    **dict.fromkeys(("weight", "mean", "squares", "potential"), "f"),
    **dict.fromkeys(("draws", "groups", "executed", "invalid", "masked"), "i"),
    **dict.fromkeys(("depth", "bin"), "h"),
    **dict.fromkeys(("kind", "status", "flat", "silent", "returns"), "b"),
}
_NOBODY = bytes(32)


class Rows:
    """The columns and the ids. A row that becomes free is used again."""

    task: array[int]
    """Number of its task."""
    kind: array[int]
    depth: array[int]
    status: array[int]
    place: array[int]
    """Where it stands in its cell."""
    bin: array[int]
    """The level of its potential, or the one of all that are retired."""
    due: array[int]
    """The draw at which its rest, or its retirement, is over."""
    weight: array[float]
    """Of the statistics; 0 if no idea was executed yet."""
    mean: array[float]
    squares: array[float]
    potential: array[float]
    draws: array[int]
    groups: array[int]
    executed: array[int]
    invalid: array[int]
    masked: array[int]
    flat: array[int]
    """Groups in a row without variance, at the ceiling (+) or the floor (−)."""
    silent: array[int]
    """Groups in a row of which nothing was executed."""
    returns: array[int]

    def __init__(self) -> None:
        for name, code in _COLUMNS.items():
            setattr(self, name, array(code))
        self._columns: list[array[Any]] = [getattr(self, name) for name in _COLUMNS]
        self._ids: list[bytes] = []
        self._row_of: dict[bytes, int] = {}
        self._free: list[int] = []

    def __len__(self) -> int:
        """States that are there."""
        return len(self._row_of)

    def column(self, name: str) -> npt.NDArray[Any]:
        """A copy of one column, rows that are free included."""
        return np.array(getattr(self, name))

    def find(self, state: str) -> int | None:
        return self._row_of.get(_digest(state))

    def id_of(self, row: int) -> str:
        return self._ids[row].hex()

    def __iter__(self) -> Iterator[int]:
        """The rows of all states."""
        return iter(self._row_of.values())

    def add(self, state: str) -> int:
        """A row of zeros for a new state."""
        key = _digest(state)
        if self._free:
            row = self._free.pop()
            self._ids[row] = key
        else:
            row = len(self._ids)
            self._ids.append(key)
            for column in self._columns:
                column.append(0)
        self._row_of[key] = row
        return row

    def remove(self, row: int) -> None:
        del self._row_of[self._ids[row]]
        self._ids[row] = _NOBODY
        for column in self._columns:
            column[row] = 0
        self._free.append(row)

    def statistics(self, row: int) -> Statistics:
        return Statistics(self.weight[row], self.mean[row], self.squares[row])

    def dump(self) -> dict[str, npt.NDArray[Any]]:
        ids = np.frombuffer(b"".join(self._ids), np.uint8).reshape(-1, 32)
        columns = {name: self.column(name) for name in _COLUMNS}
        return {"ids": ids, "free": np.array(self._free, np.int64), **columns}

    @classmethod
    def restored(cls, state: Mapping[str, npt.NDArray[Any]]) -> Rows:
        rows = cls()
        for name, column in zip(_COLUMNS, rows._columns, strict=True):
            column.frombytes(state[name].tobytes())
        ids = state["ids"].tobytes()
        rows._ids = [ids[start : start + 32] for start in range(0, len(ids), 32)]
        rows._row_of = dict(zip(rows._ids, range(len(rows._ids)), strict=True))
        rows._row_of.pop(_NOBODY, None)
        rows._free = state["free"].tolist()
        return rows


def _digest(state: str) -> bytes:
    try:
        key = bytes.fromhex(state)
    except ValueError:
        key = b""
    if len(key) != 32:
        raise UsageError(f"{state!r} is no id of a help state: 64 hexadecimal digits are.")
    return key
