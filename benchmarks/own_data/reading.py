"""A person's table as it is: every cell as text, so that `007` stays `007`.

CSV and TSV (also gzipped) in UTF-8, UTF-16 or Windows-1252, with `,`, `;`, tab or `|`; Parquet.
What can not be read raises `TaskError` in one line; what had to be guessed is a remark.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections import Counter
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mle_ideator.benchmarks.grading.cells import MISSING
from mle_ideator.benchmarks.grading.wording import count
from mle_ideator.errors import TaskError

if TYPE_CHECKING:
    import pandas as pd

DELIMITERS = (",", ";", "\t", "|")
SNIFFED_ROWS = 50
PANDAS_INDEX = "__index_level_0__"


@dataclass(frozen=True)
class Table:
    """Cells as text, missing ones empty; and what was guessed."""

    path: Path
    frame: pd.DataFrame
    remarks: list[str] = field(default_factory=list)


def read_table(path: Path) -> Table:
    """The table in `path`."""
    data = _bytes(path)
    remarks: list[str] = []
    if data.startswith(b"PAR1") or path.suffix.lower() in {".parquet", ".pq"}:
        table = _parquet(path, data)
    else:
        table = _csv(path, _text(path, data, remarks))
    if not table.num_rows:
        raise TaskError(f"{path} has a header and no rows.")
    frame = table.to_pandas()
    return Table(path, _without_index(frame.fillna(""), path, remarks), remarks)


def blank(cells: pd.Series[str]) -> pd.Series[bool]:
    """True where a cell says that there is no value."""
    return cells.str.strip().str.lower().isin(MISSING)


def _bytes(path: Path) -> bytes:
    if not path.exists():
        siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        near = get_close_matches(path.name, siblings, n=1)
        raise TaskError(
            f"there is no file {path}" + (f"; did you mean {near[0]}?" if near else ".")
        )
    if not path.is_file():
        what = "a folder" if path.is_dir() else "no regular file"
        raise TaskError(f"{path} is {what}; name a CSV, TSV or Parquet file.")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TaskError(f"{path} can not be read: {error.strerror}.") from error
    if data.startswith(b"\x1f\x8b"):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise TaskError(f"{path} is a broken gzip file: {error}.") from error
    if data.startswith(b"PK\x03\x04"):
        raise TaskError(f"{path} is an Excel or zip file; save the table as CSV or Parquet.")
    if not data.strip():
        raise TaskError(f"{path} is empty.")
    return data


def _text(path: Path, data: bytes, remarks: list[str]) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encodings = ["utf-16"]
    elif b"\x00" in data[:2000]:
        # Plain letters in UTF-16 have every other byte 0; which one tells the byte order.
        encodings = ["utf-16-be" if data[0] == 0 else "utf-16-le"]
    else:
        encodings = ["utf-8-sig", "cp1252", "latin-1"]
    for encoding in encodings:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\x00" in text:
            break
        if encoding in {"cp1252", "latin-1"}:
            remarks.append(
                f"{path.name} is not UTF-8 and was read as {encoding}: check its special letters."
            )
        return text
    raise TaskError(f"{path} is no text file; CSV, TSV and Parquet can be read.")


def _csv(path: Path, text: str) -> Any:
    import pyarrow as pa
    from pyarrow import csv as arrow

    delimiter, names = _header(path, text)
    ragged: list[Any] = []

    def skip(row: Any) -> str:
        ragged.append(row)
        return "skip"

    encoded = text.encode()
    try:
        table = arrow.read_csv(
            io.BytesIO(encoded),
            arrow.ReadOptions(use_threads=False, block_size=min(len(encoded) + 1, 2**31 - 1)),
            arrow.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=skip
            ),
            arrow.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        reason = str(error).splitlines()[0]
        raise TaskError(f"{path} can not be read as a table: {reason}.") from error
    if ragged:
        first = ragged[0]
        raise TaskError(
            f"{path}: {count(len(ragged), 'row')} without as many cells as the header has "
            f"({first.expected_columns}); the first is row {first.number}, with "
            f"{first.actual_columns}."
        )
    return table.rename_columns(_named(names))


def _header(path: Path, text: str) -> tuple[str, list[str]]:
    """The delimiter by which the first rows have equally many cells, and the first row."""
    tables = {mark: _first_rows(text, mark) for mark in DELIMITERS}

    def fitness(mark: str) -> tuple[float, int]:
        widths = [len(row) for row in tables[mark]]
        return (sum(w == widths[0] for w in widths) / len(widths) * (widths[0] > 1), widths[0])

    delimiter = max(DELIMITERS, key=fitness)
    names = tables[delimiter][0]
    if len(names) < 2:
        raise TaskError(
            f"{path} has one column only; columns are told apart by a comma, semicolon, tab or |."
        )
    if all(not name.strip() or _is_number(name) for name in names):
        raise TaskError(
            f"{path} has numbers in its first line where column names are expected; add a header."
        )
    _require_distinct(path, _named(names))
    return delimiter, names


def _require_distinct(path: Path, names: list[str]) -> None:
    double = [repr(name) for name, times in Counter(names).items() if times > 1]
    if double:
        raise TaskError(f"{path} has columns of the same name: {', '.join(double[:5])}.")


def _first_rows(text: str, delimiter: str) -> list[list[str]]:
    lines = io.StringIO(text, newline="")
    try:
        rows = [row for row in islice(csv.reader(lines, delimiter=delimiter), SNIFFED_ROWS) if row]
    except csv.Error:
        rows = []
    return rows or [[""]]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _named(names: list[str]) -> list[str]:
    return [name.strip() or f"unnamed_{place}" for place, name in enumerate(names)]


def _parquet(path: Path, data: bytes) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(io.BytesIO(data))
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise TaskError(f"{path} can not be read as Parquet: {reason}.") from error
    _require_distinct(path, table.column_names)
    columns = {name: _as_text(path, name, table[name]) for name in table.column_names}
    return pa.table({name: cells for name, cells in columns.items() if name != PANDAS_INDEX})


def _as_text(path: Path, name: str, cells: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(cells.type):
        cells = cells.cast(cells.type.value_type)
    if pa.types.is_floating(cells.type):
        cells = pc.if_else(pc.is_nan(cells), None, cells)
    try:
        return pc.cast(cells, pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise TaskError(
            f"{path}: column {name!r} holds {cells.type}; only numbers, text and dates can be used."
        ) from error


def _without_index(frame: pd.DataFrame, path: Path, remarks: list[str]) -> pd.DataFrame:
    """Without the unnamed row numbers that pandas writes as a first column."""
    first = str(frame.columns[0])
    numbers = [str(number) for number in range(len(frame))]
    if first in {"unnamed_0", "Unnamed: 0"} and frame[first].tolist() == numbers:
        remarks.append(f"the first column of {path.name} only counts its rows; it was left out.")
        return frame.drop(columns=first)
    return frame
