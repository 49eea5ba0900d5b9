"""Columns of text -> numbers or class codes. What can not be read is marked, never guessed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from mle_ideator.benchmarks.grading.formulas import Array

MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "<na>", "nat"})
"""Cells that say *no value*, in lower case."""

UNKNOWN = -1
"""Code of a label that is none of the classes."""
BLANK = -2
"""Code of a cell that says *no value*, where that is not the name of a class."""

_BOOLEANS = {"false": "0.0", "true": "1.0"}


def numbers(column: Any) -> tuple[Array, Array]:
    """Text (a pyarrow array) as float64, and a mask of the cells that are no number.

    Missing values and cells that are no number are NaN.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        values = pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False)
        return values, np.zeros(len(values), bool)
    except pa.ArrowInvalid:
        read = [_number(text) for text in column.to_pylist()]
    values = np.array([math.nan if value is None else value for value in read], float)
    return values, np.array([value is None for value in read], bool)


def _number(text: str) -> float | None:
    text = text.strip()
    if text.lower() in MISSING:
        return math.nan
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


class Classes:
    """The classes of a task in their order, and the ways in which people write them.

    An exact match comes first. Else `1`, `1.0` and ` 1` are one class, so are `True` and `true`,
    and so are `True` and `1` if the task has only such classes; unless this would make two of
    the task's classes equal.
    """

    def __init__(self, names: Iterable[str], *, closed: bool = True) -> None:
        self.names = tuple(names)
        self.closed = closed
        self._exact = {name: code for code, name in enumerate(self.names)}
        words = {name.strip().lower() for name in self.names}
        self._boolean = words <= {"0", "1", "0.0", "1.0", *_BOOLEANS}
        plain = {self._plain(name): code for code, name in enumerate(self.names)}
        self._plainly = plain if len(plain) == len(self.names) else {}

    def codes(self, column: Any) -> tuple[Array, bool]:
        """A code for each text of a pyarrow array, and whether any was spelt otherwise.

        Labels that are no class are `UNKNOWN`, or if the classes are not closed get codes of their
        own above the known ones; cells without a value are `BLANK`.
        """
        import pyarrow.compute as pc

        encoded = pc.dictionary_encode(column)
        labels = encoded.dictionary.to_pylist()
        table = np.array([self._code(label) for label in labels], np.int64)
        if not self.closed:
            new = table == UNKNOWN
            table[new] = len(self.names) + np.arange(new.sum())
        otherwise = any(
            0 <= code < len(self.names) and label not in self._exact
            for code, label in zip(table, labels, strict=True)
        )
        return table[encoded.indices.to_numpy(zero_copy_only=False)], otherwise

    def _code(self, label: str) -> int:
        if label in self._exact:
            return self._exact[label]
        if label.strip().lower() in MISSING:
            return BLANK
        return self._plainly.get(self._plain(label), UNKNOWN)

    def _plain(self, label: str) -> str:
        text = label.strip()
        if text.lower() in _BOOLEANS:
            return _BOOLEANS[text.lower()] if self._boolean else text.lower()
        number = _number(text)
        return text if number is None or not math.isfinite(number) else repr(number + 0.0)


def in_order(names: Iterable[str]) -> list[str]:
    """Sorted: by value if all are numbers, else as text."""
    unique = sorted(set(names))
    values = [_number(name) for name in unique]
    if any(value is None or not math.isfinite(value) for value in values):
        return unique
    return sorted(unique, key=float)
