"""Which row of a submission belongs to which wanted id. Ids are text and compared exactly."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from mle_ideator.benchmarks.grading.formulas import Array
from mle_ideator.benchmarks.grading.wording import count, some
from mle_ideator.types import Problem


class KnownIds:
    """The wanted ids, and where each stands."""

    def __init__(self, text: Any) -> None:
        """`text` is a pyarrow array."""
        self.text = text

    def __len__(self) -> int:
        return len(self.text)

    @property
    def unique(self) -> bool:
        if self._table is not None:
            return int((self._table[1] >= 0).sum()) == len(self)
        return len(self.text.unique()) == len(self)

    def align(
        self, submitted: Any, problems: list[Problem], remarks: list[Problem]
    ) -> Array | None:
        """For each of these its row in the submission; `None` if they are in order already.

        `submitted` is a pyarrow array of text. Adds problems for ids that are missing, extra or
        double, in which case the result means nothing.
        """
        if submitted.equals(self.text):
            return None
        places = self.places(submitted)
        known = places >= 0
        if len(submitted) == len(self) and known.all():
            order = np.full(len(self), -1, np.int64)
            order[places] = np.arange(len(self))
            if (order >= 0).all():
                message = "the rows are in another order; they were taken by id."
                remarks.append(Problem("row_order", message))
                return order
        times = np.bincount(places[known], minlength=len(self))
        problems += _problems(self.text, times, submitted.filter(~known).unique())
        return None

    def places(self, ids: Any) -> Array:
        """For each of these its place among the known ones, or -1."""
        import pyarrow.compute as pc

        numbers = None if self._table is None else _integers(ids)
        if self._table is None or numbers is None:
            found = pc.fill_null(pc.index_in(ids, value_set=self.text), -1)
            return np.asarray(found.to_numpy(zero_copy_only=False))
        low, table = self._table
        known = (numbers >= low) & (numbers < low + len(table))
        return np.asarray(np.where(known, table[np.where(known, numbers - low, 0)], -1))

    @cached_property
    def _table(self) -> tuple[int, Array] | None:
        """The lowest id, and places by how much an id is above it.

        Only if all are integers that lie close together: looking up text takes ten times longer.
        """
        numbers = _integers(self.text)
        if numbers is None or not len(numbers):
            return None
        low, high = int(numbers.min()), int(numbers.max())
        if high - low >= _WIDEST * len(numbers):
            return None
        table = np.full(high - low + 1, -1, np.int64)
        table[numbers - low] = np.arange(len(numbers))
        return low, table


_WIDEST = 8
"""Places of a table for each id in it."""


def _integers(ids: Any) -> Array | None:
    """The ids as integers if that loses nothing: `007` and `1e5` must stay text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        numbers = pc.cast(ids, pa.int64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        return None
    # Of all ways to write a number the plain one is the shortest, so the lengths tell.
    written = pc.sum(pc.binary_length(ids)).as_py() or 0
    return numbers if written == _plain_length(numbers) else None


def _plain_length(numbers: Array) -> int:
    """Characters that it takes to write all of them."""
    size = np.abs(numbers)
    digits = len(str(int(size.max(initial=0))))
    longer = sum(int((size >= 10**power).sum()) for power in range(1, digits))
    return len(numbers) + longer + int((numbers < 0).sum())


def align(
    submitted: Any, wanted: Any, problems: list[Problem], remarks: list[Problem]
) -> Array | None:
    """`KnownIds.align` for a single use; both are pyarrow arrays of text."""
    return KnownIds(wanted).align(submitted, problems, remarks)


def _problems(wanted: Any, times: Array, extra: Any) -> list[Problem]:
    missing, double = wanted.filter(times == 0), wanted.filter(times > 1)
    problems = []
    if len(double):
        message = f"{count(len(double), 'id')} more than once: {_some(double)}."
        advice = "Write exactly one row for each id."
        problems.append(Problem("duplicate_ids", f"{message} {advice}"))
    if len(missing):
        message = f"{count(len(missing), 'id')} of {len(wanted):,} missing: {_some(missing)}."
        problems.append(Problem("missing_ids", f"{message} {_advice(missing, extra)}"))
    if len(extra):
        message = f"{count(len(extra), 'id')} that test.csv does not have: {_some(extra)}."
        problems.append(Problem("extra_ids", f"{message} {_advice(missing, extra)}"))
    return problems


def _some(ids: Any) -> str:
    return some(ids.slice(0, 10).to_pylist(), len(ids))


def _advice(missing: Any, extra: Any) -> str:
    """What to do; if ids look as if a reader had turned them into numbers, that."""
    lost = {_as_number(name) for name in missing.slice(0, 1000).to_pylist()} - {None}
    if lost & {_as_number(name) for name in extra.slice(0, 1000).to_pylist()}:
        return (
            "Ids are text and must stay as they are: "
            "read test.csv with dtype=str, keep_default_na=False for the id."
        )
    return "Write exactly one row for each id of test.csv."


def _as_number(name: str) -> float | None:
    try:
        return float(name)
    except ValueError:
        return None
