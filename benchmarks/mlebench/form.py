"""What a submission looks like: the columns, ids and kinds of cells that the sample has.

mle-bench's graders differ in what they check: some take columns by position, some never look at the
ids. So the form is checked here as well, against the sample submission, which is public.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mle_ideator.benchmarks.grading.cells import numbers
from mle_ideator.benchmarks.grading.csv_text import read_columns
from mle_ideator.benchmarks.grading.files import Refused, read_regular_file
from mle_ideator.benchmarks.grading.ids import align
from mle_ideator.benchmarks.grading.wording import EXAMPLES, count, quoted
from mle_ideator.errors import TaskError
from mle_ideator.types import Problem

_MIB = 2**20
_LARGEST_SAMPLE = 2048 * _MIB


@dataclass
class Looked:
    """What is to be said of a submission's form."""

    problems: list[Problem] = field(default_factory=list)
    remarks: list[Problem] = field(default_factory=list)
    cells: dict[str, Any] = field(default_factory=dict)
    """Columns of text, pyarrow arrays by name in the sample's order."""
    order: Any = None
    """For each of the sample's rows its row here; `None` if they are in order."""

    @property
    def canonical(self) -> bytes:
        """The same predictions, with rows and columns in the sample's order."""
        import pyarrow as pa
        from pyarrow import csv as arrow

        table = pa.table(self.cells)
        target = io.BytesIO()
        arrow.write_csv(table if self.order is None else table.take(self.order), target)
        return target.getvalue()


@dataclass(frozen=True)
class Form:
    """The form of a competition's submissions."""

    id_column: str
    columns: tuple[str, ...]
    """Prediction columns."""
    ids: Any
    """A pyarrow array of text, as the sample has them."""
    unique: bool
    """Does each id stand once, so that rows can be told by it?"""
    numeric: frozenset[str]
    """Columns that hold numbers in the sample."""
    size: int
    """Bytes of the sample."""

    @property
    def header(self) -> tuple[str, ...]:
        return (self.id_column, *self.columns)

    @property
    def max_bytes(self) -> int:
        """Ample: predictions may be long texts where the sample has short ones."""
        return 64 * _MIB + 32 * self.size

    @property
    def max_rows(self) -> int:
        return 10 * len(self.ids) + 10_000

    def look_at(self, data: bytes) -> Looked:
        """Compare a submission with the sample. Never raises for what it is."""
        looked = Looked()
        try:
            cells, remarks = read_columns(data, self.header, self.max_rows, lambda _: False)
        except Refused as refused:
            return Looked(problems=list(refused.problems))
        looked.remarks.extend(remarks)
        looked.cells = {name: cells[name] for name in self.header}
        looked.order = self._order(cells[self.id_column], looked)
        for name in sorted(self.numeric):
            self._require_numbers(name, cells, looked)
        return looked

    def _order(self, ids: Any, looked: Looked) -> Any:
        if self.unique:
            return align(ids, self.ids, looked.problems, looked.remarks)
        if not ids.equals(self.ids):
            message = (
                f"{self.id_column} must be as in the sample submission, row by row "
                f"({count(len(self.ids), 'row')}), as its values are not unique."
            )
            looked.problems.append(Problem("other_ids", message))
        return None

    def _require_numbers(self, name: str, cells: dict[str, Any], looked: Looked) -> None:
        values, _ = numbers(cells[name])
        wrong = np.flatnonzero(~np.isfinite(values))
        if not len(wrong):
            return
        shown = ", ".join(
            f"{quoted(cells[name][int(row)].as_py())} for {self.id_column} "
            f"{quoted(cells[self.id_column][int(row)].as_py())}"
            for row in wrong[:EXAMPLES]
        )
        more = ", …" if len(wrong) > EXAMPLES else ""
        message = (
            f"{count(len(wrong), 'prediction')} in column {quoted(name)} are no finite numbers, as "
            f"the sample has: {shown}{more}. Write numbers, and fill gaps in."
        )
        looked.problems.append(Problem("not_a_number", message))


def form_of(sample: Path) -> Form:
    """The form that a sample submission shows. Raises `TaskError`."""
    try:
        data = read_regular_file(sample, _LARGEST_SAMPLE)
        header = next(csv.reader([data.decode("utf-8-sig").lstrip().splitlines()[0]]))
        cells, _ = read_columns(data, header, data.count(b"\n") + 1, lambda _: False)
    except (Refused, UnicodeDecodeError, IndexError, StopIteration) as error:
        said = error.problems[0].message if isinstance(error, Refused) else "it is no CSV file"
        raise TaskError(f"the sample submission {sample} can not be used: {said}") from error
    ids, columns = cells[header[0]], tuple(header[1:])
    numeric = frozenset(name for name in columns if np.isfinite(numbers(cells[name])[0]).all())
    unique = len(ids.unique()) == len(ids)
    return Form(header[0], columns, ids, unique, numeric, len(data))
