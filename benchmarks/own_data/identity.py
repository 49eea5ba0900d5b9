"""The column that names the rows of a person's data, if one can."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mle_ideator.benchmarks.grading.wording import count, quoted
from mle_ideator.benchmarks.own_data.reading import Table, blank
from mle_ideator.errors import TaskError, unknown

if TYPE_CHECKING:
    import pandas as pd

LOOKS_LIKE_AN_ID = re.compile(r"(?i:id|index|row|key|uuid)$|.*(?i:[_ -]id)$|.*[a-z]I[dD]$")
OWN_ID = "row_id"


@dataclass(frozen=True)
class Identity:
    """Which column names the rows."""

    named: str | None
    """The person's id column."""
    usable: str | None
    """The same, if each value occurs once in both files together; else a task numbers its rows."""


def identity_of(wanted: str | None, train: Table, test: Table | None) -> Identity:
    """The id column that was named or, without that, one that looks and works like an id.

    Raises `TaskError` if the one that was named does not name the rows of a file.
    """
    if wanted is None:
        for name in train.frame.columns:
            if LOOKS_LIKE_AN_ID.fullmatch(name) and _unique(name, train, test):
                return Identity(name, name)
        return Identity(None, None)
    for table in filter(None, (train, test)):
        _require_names_rows(wanted, table)
    return Identity(wanted, wanted if _unique(wanted, train, test) else None)


def free_name(columns: pd.Index[str]) -> str:
    """A name for the task's own row numbers that no column has."""
    name = OWN_ID
    while name in columns:
        name = f"task_{name}"
    return name


def _unique(name: str, train: Table, test: Table | None) -> bool:
    import pandas as pd

    cells = [table.frame[name] for table in (train, test) if table is not None]
    together = pd.concat(cells)
    return together.is_unique and not blank(together).any()


def _require_names_rows(name: str, table: Table) -> None:
    if name not in table.frame.columns:
        raise TaskError(f"{table.path}: {unknown('id column', name, table.frame.columns)}")
    cells = table.frame[name]
    if blank(cells).any():
        raise TaskError(
            f"{table.path}: {count(int(blank(cells).sum()), 'row')} without an id in {name!r}."
        )
    if not cells.is_unique:
        double = cells[cells.duplicated()]
        raise TaskError(
            f"{table.path}: the id column {name!r} has {quoted(double.iloc[0])} "
            "more than once; "
            "name another one, or none."
        )
