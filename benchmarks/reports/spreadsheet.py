"""Rows as CSV, for programs and for whoever opens them in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

Line = Sequence[object]


def csv_of(columns: Line, lines: Iterable[Line]) -> bytes:
    """Unknown is an empty cell. A text that a spreadsheet would take for a formula gets a `'`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(value) for value in line] for line in lines)
    return text.getvalue().encode("utf-8", "replace")


def _cell(value: object) -> object:
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{value}"
    return value
