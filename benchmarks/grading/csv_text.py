"""Bytes of a CSV file -> columns of text, taken by name.

Nothing is interpreted: `007`, `1e5`, `NA` and an empty cell stay the text they are.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from typing import Any

from mle_ideator.benchmarks.grading.files import Refused, refuse
from mle_ideator.benchmarks.grading.wording import count, quoted, some
from mle_ideator.types import Problem

INDEX_NAMES = frozenset({"", "index", "Unnamed: 0", "__index_level_0__"})
"""Names under which pandas writes an index nobody asked for."""

_SIGNATURES = (
    (b"\x1f\x8b", "compressed", "compressed (gzip)"),
    (b"PK\x03\x04", "compressed", "compressed (zip)"),
    (b"BZh", "compressed", "compressed (bzip2)"),
    (b"\xfd7zXZ\x00", "compressed", "compressed (xz)"),
    (b"\x28\xb5\x2f\xfd", "compressed", "compressed (zstd)"),
    (b"PAR1", "not_csv", "a Parquet file"),
    (b"\xff\xfe", "utf16", "encoded as UTF-16"),
    (b"\xfe\xff", "utf16", "encoded as UTF-16"),
)
_NEWLINE = b"\n"
_BLANK_LINES = Problem("blank_lines", "blank lines were skipped.")
_INK = re.compile(rb"\S")
_FIRST_LINES = re.compile(rb"[\r\n]*")
_BOM = b"\xef\xbb\xbf"
_RAGGED_ROWS_COUNTED = 1000
_MIN_HEADER_LIMIT = 2**16
"""Bytes. A header of millions of empty names would be slow to take apart."""


def read_columns(
    data: bytes, wanted: Sequence[str], max_rows: int, is_data: Callable[[str], bool]
) -> tuple[dict[str, Any], list[Problem]]:
    """The wanted columns as pyarrow arrays of text, and remarks. Raises `Refused`.

    The first wanted column is the id. `is_data` tells whether a cell is a known id or class, by
    which a missing header is recognised.
    """
    start, remarks = _start_of_text(data)
    end = data.find(b"\n", start)
    end = len(data) if end < 0 else end + 1
    _require_short_header(end - start, wanted)
    names = _header(data[start:end])
    remarks += _check_header(names, wanted, is_data)
    if not _INK.search(data, end):
        raise refuse("no_rows", "there is a header but no row. Predict each row of test.csv.")
    lines = data.count(b"\n", end)
    if lines > max_rows:
        message = f"there are {count(lines, 'line')}, far more than this task has rows to predict."
        raise refuse("too_many_rows", f"{message} Write one row for each row of test.csv.")
    columns = _parse(data, end, names, wanted)
    if _BLANK_LINES not in remarks and _has_blank_lines(data, lines, len(columns[wanted[0]])):
        remarks.append(_BLANK_LINES)
    return columns, remarks


def _start_of_text(data: bytes) -> tuple[int, list[Problem]]:
    """Where the header starts, and remarks on how the text is stored."""
    for signature, code, what in _SIGNATURES:
        if data.startswith(signature):
            raise refuse(code, f"the file is {what}. Write plain UTF-8 CSV text.")
    if not _INK.search(data):
        raise refuse("empty_file", "the file is empty. Write a header and a row for each id.")
    if b"\x00" in data:
        raise _nul_bytes(data)
    if not data.isascii():
        _require_utf8(data)
    has_cr = b"\r" in data  # looking for one byte is fast, for two it is not
    if has_cr and b"\n" not in data:
        raise refuse("cr_only", "lines end with CR alone. End them with a line feed.")
    start, remarks = 0, []
    if data.startswith(_BOM):
        start = len(_BOM)
        remarks.append(Problem("bom", "the file starts with a byte order mark, which was skipped."))
    if has_cr and b"\r\n" in data:
        remarks.append(Problem("crlf", "lines end with CR LF, which was accepted."))
    text = _FIRST_LINES.match(data, start).end()  # type: ignore[union-attr]
    if text > start:
        remarks.append(_BLANK_LINES)
    return text, remarks


def _has_blank_lines(data: bytes, lines: int, rows: int) -> bool:
    """`lines` end in all of `data` after the header, of which `rows` are rows.

    Counting tells it without another search, unless cells hold line ends.
    """
    if b'"' in data:
        return b"\n\n" in data or b"\n\r\n" in data
    return rows < lines + (not data.endswith(b"\n"))


def _nul_bytes(data: bytes) -> Refused:
    head = data[:4096]
    if max(head[::2].count(0), head[1::2].count(0)) > len(head) // 4 and head.count(0) < len(head):
        return refuse("utf16", "the file is encoded as UTF-16. Write plain UTF-8 CSV text.")
    position = data.find(b"\x00")
    message = f"the file holds NUL bytes, the first at byte {position:,}."
    return refuse("nul_bytes", f"{message} Write plain UTF-8 CSV text.")


def _require_utf8(data: bytes) -> None:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        message = f"the file is not UTF-8: byte {error.start:,} is 0x{data[error.start]:02x}."
        raise refuse("not_utf8", f"{message} Write it with encoding='utf-8'.") from None


def _require_short_header(length: int, wanted: Sequence[str]) -> None:
    if length > _MIN_HEADER_LIMIT + 4 * len(",".join(wanted).encode()):
        message = f"the first line has {length:,} bytes and is no header of this task."
        raise refuse("not_csv", f"{message} The header must be {quoted_header(wanted)}.")


def _header(line: bytes) -> list[str]:
    try:
        return next(csv.reader([line.decode().rstrip("\r\n")], strict=False))
    except csv.Error:
        raise refuse("not_csv", "the first line is no CSV header. Write plain CSV text.") from None


# ----------------------------------------------------------------------------------- header


def _check_header(
    names: list[str], wanted: Sequence[str], is_data: Callable[[str], bool]
) -> list[Problem]:
    """Remarks on a header that will do. Raises `Refused`."""
    missing = [name for name in wanted if name not in names]
    extra = [n for n in dict.fromkeys(names) if n not in wanted and n not in INDEX_NAMES]
    should_be = f"The header must be {quoted_header(wanted)}."
    if wanted[0] in missing and names and names[0][:1] in tuple("{[<"):
        raise refuse("not_csv", f"the file looks like JSON or markup. Write CSV text. {should_be}")
    if wanted[0] in missing and any(_is_number(name) or is_data(name) for name in extra):
        message = f"the first line is no header: {some(names, len(names))}. {should_be}"
        raise refuse("no_header", message)
    if missing:
        raise Refused(*_header_problems(names, missing, extra, should_be))
    twice = [name for name in wanted if names.count(name) > 1]
    if twice:
        message = f"columns occur twice: {some(twice, len(twice))}. {should_be}"
        raise refuse("duplicate_column", message)
    if extra:
        raise Refused(_extra_columns(extra, should_be))
    remarks = []
    if len(names) > len(wanted):
        index = [name for name in names if name not in wanted]
        message = f"an index column was ignored: {some(index, len(index))}. Write with index=False."
        remarks.append(Problem("index_column", message))
    if [name for name in names if name in wanted] != list(wanted):
        message = "the columns are in another order than in the sample; they were taken by name."
        remarks.append(Problem("column_order", message))
    return remarks


def _header_problems(
    names: list[str], missing: list[str], extra: list[str], should_be: str
) -> list[Problem]:
    for separator, what in ((";", "';'"), ("\t", "tabs"), ("|", "'|'")):
        parts = [part.strip().strip('"') for name in names for part in name.split(separator)]
        if len(parts) > len(names) and all(name in parts for name in missing):
            message = f"the columns are separated by {what}. Separate them by commas."
            return [Problem("wrong_separator", message)]
    near = {_plain(name): name for name in extra}
    spelt = {near[_plain(name)]: name for name in missing if _plain(name) in near}
    problems = []
    if spelt:
        wrong = ", ".join(f"{quoted(got)} must be {quoted(name)}" for got, name in spelt.items())
        message = f"column names must match exactly, with case and spaces: {wrong}."
        problems.append(Problem("header_spelling", message))
    absent = [name for name in missing if name not in spelt.values()]
    rest = [name for name in extra if name not in spelt]
    if absent:
        are = f"{count(len(absent), 'column')} missing: {some(absent, len(absent))}."
        problems.append(Problem("missing_column", f"{are} {should_be}"))
    if rest:
        problems.append(_extra_columns(rest, should_be))
    return problems


def _extra_columns(extra: list[str], should_be: str) -> Problem:
    are = f"{count(len(extra), 'column')} too many: {some(extra, len(extra))}."
    return Problem("extra_column", f"{are} {should_be}")


def quoted_header(wanted: Sequence[str]) -> str:
    """The header line as it must be written, cut if it is very long."""
    line = ",".join(wanted)
    return repr(line) if len(line) <= 300 else repr(line[:299] + "…")


def _plain(name: str) -> str:
    return name.strip().strip("\ufeff\"'").strip().casefold()


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


# ------------------------------------------------------------------------------------- rows


def _parse(data: bytes, start: int, names: list[str], wanted: Sequence[str]) -> dict[str, Any]:
    import pyarrow as pa
    from pyarrow import csv as arrow

    ragged = _RaggedRows(data, start)
    by_number = {name: str(names.index(name)) for name in wanted}
    body = pa.py_buffer(data).slice(start)
    try:
        table = arrow.read_csv(
            pa.BufferReader(body),
            read_options=arrow.ReadOptions(column_names=[str(i) for i in range(len(names))]),
            parse_options=arrow.ParseOptions(
                newlines_in_values=b'"' in data, invalid_row_handler=ragged
            ),
            convert_options=arrow.ConvertOptions(
                check_utf8=False,
                strings_can_be_null=False,
                include_columns=list(by_number.values()),
                column_types={number: pa.large_string() for number in by_number.values()},
            ),
        )
    except pa.ArrowInvalid:
        ragged.refuse_if_any()
        message = "the rows can not be read as CSV. Write them with DataFrame.to_csv(index=False)."
        raise refuse("not_csv", message) from None
    ragged.refuse_if_any()
    return {name: table.column(number).combine_chunks() for name, number in by_number.items()}


class _RaggedRows:
    """Counts rows with too few or too many cells, up to a bound."""

    def __init__(self, data: bytes, start: int) -> None:
        self._data, self._start = data, start
        self._count = 0
        self._first: tuple[int, int, str] | None = None

    def __call__(self, row: Any) -> str:
        if self._first is None:
            self._first = row.actual_columns, row.expected_columns, row.text
        self._count += 1
        return "error" if self._count >= _RAGGED_ROWS_COUNTED else "skip"

    def refuse_if_any(self) -> None:
        if self._first is None:
            return
        has, wanted, text = self._first
        more = " or more" if self._count >= _RAGGED_ROWS_COUNTED else ""
        message = (
            f"{count(self._count, 'row')}{more} do not have the header's {count(wanted, 'cell')};"
            f" {self._line(text)}has {has}: {quoted(text)}. Quote cells that hold commas."
        )
        raise refuse("ragged_rows", message)

    def _line(self, text: str) -> str:
        at = self._data.find(text.encode(), self._start)
        if at < 0:
            return "one "
        return f"line {self._data.count(_NEWLINE, 0, at) + 1:,} "
