"""A report in the terminal: its tables, none wider than the terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from mle_ideator.benchmarks.grading.report import GradeReport
from mle_ideator.benchmarks.reports.table import Column, Entry, Table
from mle_ideator.benchmarks.reports.tables import tables_of
from mle_ideator.benchmarks.reports.values import Report

_GAP = 2
_FOLDED = 28
"""Columns of texts may be folded down to this width."""
PLAIN_WIDTH = 80
"""Where the output is no terminal."""


def show_report(report: Report, console: Console | None = None) -> None:
    """Print all tables of a report."""
    out = console or report_console()
    out.print(Text(report.title, style="bold"), soft_wrap=True)
    show_tables(tables_of(report), out)


def show_tables(tables: Iterable[Table], out: Console) -> None:
    """Print tables, each cut into such groups of columns as fit."""
    for table in tables:
        out.print(Text(f"\n{table.title}", style="bold"), soft_wrap=True)
        for part in parts_of(table, out.width):
            out.print(_drawn(part))
        for note in table.notes:
            out.print(Text(note, style="dim"))


def report_console() -> Console:
    """As wide as the terminal; elsewhere of a fixed width, without any codes."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)


def parts_of(table: Table, width: int) -> list[Table]:
    """The table cut into such groups of columns as fit, each with the columns that name its rows.

    A single column that is too wide for the rest is folded where it is printed.
    """
    widths = [_width(table, place) for place in range(len(table.columns))]
    heads = _heads(table)
    room = width - sum(widths[place] + _GAP for place in heads)
    groups: list[list[int]] = [[]]
    left = room
    for place in range(len(table.columns)):
        if place in heads:
            continue
        if groups[-1] and widths[place] + _GAP > left:
            groups.append([])
            left = room
        groups[-1].append(place)
        left -= widths[place] + _GAP
    return [_part(table, [*heads, *group]) for group in groups]


def _heads(table: Table) -> list[int]:
    """The first columns of texts, at most two, so that something is left for the others."""
    heads = [0]
    if len(table.columns) > 2 and not table.columns[1].numeric:
        heads.append(1)
    return heads


def _width(table: Table, place: int) -> int:
    texts = [table.columns[place].name, *(_said(row[place]) for row in table.rows)]
    widest = max(Text(line).cell_len for text in texts for line in text.splitlines() or [""])
    return widest if table.columns[place].numeric else min(widest, _FOLDED)


def _part(table: Table, places: list[int]) -> Table:
    rows = tuple(tuple(row[place] for place in places) for row in table.rows)
    columns = tuple(table.columns[place] for place in places)
    return Table(key=table.key, title=table.title, columns=columns, rows=rows)


def _drawn(table: Table) -> RichTable:
    drawn = RichTable(box=None, pad_edge=False)
    for column in table.columns:
        _add(drawn, column)
    for row in table.rows:
        drawn.add_row(*map(_text, row))
    return drawn


def _add(drawn: RichTable, column: Column) -> None:
    drawn.add_column(
        Text(column.name), justify="right" if column.numeric else "left", overflow="fold"
    )


def _text(entry: Entry) -> Text:
    text = Text(entry.text + ("*" if entry.best else ""), style="bold" if entry.best else "")
    return text.append(f"\n{entry.interval}", style="dim") if entry.interval else text


def _said(entry: Entry) -> str:
    return f"{entry.text}{'*' if entry.best else ''}\n{entry.interval}"


def show_grade(graded: GradeReport, console: Console | None = None) -> None:
    """Print what one submission is worth, as far as it is known."""
    out = console or report_console()
    direction = "lower" if graded.is_lower_better else "higher"
    out.print(Text(f"{graded.competition_id}: {graded.metric}, {direction} is better", "bold"))
    for problem in graded.problems:
        out.print(Text(f"not valid: {problem.message} ({problem.code})", "red"), soft_wrap=True)
    for remark in graded.remarks:
        out.print(Text(f"accepted: {remark.message} ({remark.code})", "dim"), soft_wrap=True)
    for name, value in _told(graded).items():
        if value is not None:
            out.print(Text(f"{name:12} {value}"), soft_wrap=True)


def _told(graded: GradeReport) -> dict[str, object]:
    entries = graded.leaderboard_entries
    whose = "people" if graded.leaderboard_of_people else "reference solutions, not people"
    return {
        "private": _number(graded.score),
        "public": _number(graded.public_score),
        "baseline": _number(graded.baseline_score),
        "gold": _number(graded.gold_threshold),
        "silver": _number(graded.silver_threshold),
        "bronze": _number(graded.bronze_threshold),
        "median": _number(graded.median_threshold),
        "medal": (graded.medal or "none") if entries else None,
        "HumanRank": _number(graded.human_rank),
        "leaderboard": f"{entries} entries of {whose}" if entries else None,
    }


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.6g}"
