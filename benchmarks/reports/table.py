"""What a table is, whatever shows it: texts in rows and columns."""

from __future__ import annotations

from mle_ideator.benchmarks.measures.figures import Figure
from mle_ideator.benchmarks.measures.values import Contender
from mle_ideator.benchmarks.reports import wording
from mle_ideator.benchmarks.reports.naming import MARK, marked
from mle_ideator.benchmarks.reports.values import Report
from mle_ideator.types import Value


class Column(Value, frozen=True, kw_only=True):
    name: str
    about: str = ""
    """What stands in it, in one line."""
    numeric: bool = True


class Entry(Value, frozen=True):
    text: str
    interval: str = ""
    best: bool = False
    """Better than all others, as far as the paired test can tell."""


class Table(Value, frozen=True, kw_only=True):
    """Every row has an entry for every column. No text holds anything but printable characters."""

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Entry, ...], ...]
    notes: tuple[str, ...] = ()


def entry_of(figure: Figure, best: bool = False) -> Entry:
    """A figure with its interval."""
    return Entry(wording.figure_text(figure), wording.interval_text(figure), best)


def flag_notes(report: Report) -> tuple[str, ...]:
    """What the mark means, if any run of the report has it."""
    note = f"{MARK}n: n of these runs have a flagged solution; they are in every figure."
    return (note,) if report.flagged else ()


def marked_name(report: Report, contender: Contender) -> str:
    """Its name, with how many of its runs are flagged."""
    named = next(named for named in report.contenders if named.contender == contender)
    return marked(named.name, named.flagged)
