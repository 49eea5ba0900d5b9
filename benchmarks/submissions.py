"""Two submissions of one task, compared row by row."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable
from typing import Literal

from mle_ideator.types import Task, Value


class Compared(Value, frozen=True, kw_only=True):
    """How one submission differs from another."""

    verdict: Literal["identical", "same predictions", "differ"]
    """Byte for byte; written otherwise, with the same predictions for the same rows; neither."""
    rows: int
    differing: int = 0
    """Rows with another prediction, or that only one of them has."""
    largest: float | None = None
    """The largest difference of two numbers; `None` where none differ."""


def compare_submissions(old: bytes, new: bytes, task: Task) -> Compared:
    """Both are valid submissions, so they are CSV with the task's columns."""
    before, after = _rows(old, task), _rows(new, task)
    rows = len(before.keys() | after.keys())
    if old == new:
        return Compared(verdict="identical", rows=rows)
    lone = len(before.keys() ^ after.keys())
    apart = [_apart(before[key], after[key]) for key in before.keys() & after.keys()]
    differing = lone + sum(distance is not None for distance in apart)
    numbers = [distance for distance in apart if distance is not None and distance < math.inf]
    return Compared(
        verdict="differ" if differing else "same predictions",
        rows=rows,
        differing=differing,
        largest=max(numbers, default=None),
    )


def _rows(content: bytes, task: Task) -> dict[str, tuple[str, ...]]:
    """Predictions by id, as text."""
    text = content.decode("utf-8-sig").lstrip("\r\n")
    rows = csv.DictReader(io.StringIO(text, newline=""))
    return {row[task.id_column]: tuple(row[name] for name in task.targets) for row in rows}


def _apart(old: Iterable[str], new: Iterable[str]) -> float | None:
    """The largest difference, infinite between what are no numbers; `None` if there is none."""
    found = [_distance(a, b) for a, b in zip(old, new, strict=True)]
    return max((distance for distance in found if distance > 0), default=None)


def _distance(old: str, new: str) -> float:
    if old == new:
        return 0.0
    try:
        return abs(float(old) - float(new))
    except ValueError:
        return math.inf
