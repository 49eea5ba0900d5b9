"""Findings as tables of texts: terminal and page show the same ones."""

from __future__ import annotations

from collections.abc import Iterable

from mle_ideator.benchmarks.measures.figures import Figure
from mle_ideator.benchmarks.reports import wording
from mle_ideator.benchmarks.reports.table import Column, Entry, Table
from mle_ideator.plain_text import printable
from mle_ideator.rl.evaluation.values import DEFINITIONS, Findings, Grouping, PairRow, Row

_SHOWN = {
    "reward": "reward",
    "improved %": "improved_rate",
    "any improved %": "any_improved_rate",
    "gain %": "gain_rate",
    "invalid %": "invalid_rate",
    "time": "seconds",
    "ideator's time": "ideator_seconds",
}
_SHOWN_OF_CATEGORY = {
    "share %": "share",
    "reward": "reward",
    "improved %": "improved_rate",
    "gain %": "gain_rate",
}
_ABOUT = DEFINITIONS | {"share": "Ideas of this category, in percent of the contender's."}
_TITLES: dict[Grouping, str] = {
    "all": "Ideators on the same help states",
    "task": "By task",
    "kind": "By kind of help state",
    "category": "By what the ideas are about",
}


def tables_of(findings: Findings) -> tuple[Table, ...]:
    """All that have rows, in the order in which they are read."""
    tables = (
        contender_table(findings, "all"),
        pair_table(findings, "all"),
        contender_table(findings, "task"),
        pair_table(findings, "task"),
        contender_table(findings, "kind"),
        pair_table(findings, "kind"),
        contender_table(findings, "category"),
        shift_table(findings),
    )
    return tuple(table for table in tables if table.rows)


def contender_table(findings: Findings, by: Grouping) -> Table:
    """Group × contender × figures, with 95 % intervals."""
    shown = _SHOWN_OF_CATEGORY if by == "category" else _SHOWN
    if findings.ideas == 1:
        shown = {name: key for name, key in shown.items() if key != "any_improved_rate"}
    columns = (
        *_grouped(by),
        Column(name="contender", numeric=False),
        Column(name="states", about="Help states that have a result."),
        Column(name="masked", about="Answers without a result, as something broke: left out."),
        *(Column(name=name, about=_ABOUT[key]) for name, key in shown.items()),
    )
    rows = tuple(_contender_row(row, shown.values()) for row in findings.rows_by(by))
    return Table(key=f"by_{by}", title=_TITLES[by], columns=columns, rows=rows, notes=_notes(by))


def _contender_row(row: Row, shown: Iterable[str]) -> tuple[Entry, ...]:
    return (
        *_group(row),
        Entry(printable(row.contender)),
        Entry(str(row.states)),
        Entry(str(row.masked)),
        *(entry_of(row.figure(key)) for key in shown),
    )


def pair_table(findings: Findings, by: Grouping) -> Table:
    """Group × pair of contenders × what differs; by all measures only over all help states."""
    columns = (
        *_grouped(by),
        Column(name="first", numeric=False),
        Column(name="second", numeric=False),
        Column(name="by", about="What is compared: reward, improved %, gain %.", numeric=False),
        Column(name="difference", about="Mean of the first less that of the second."),
        Column(name="win / tie / loss", about="States on which the first has more."),
        Column(name="p", about="Permutation test over states; corrected for all pairs (Holm)."),
        Column(name="p (sign)", about="Sign test on wins and losses, not corrected."),
        Column(name="states", about="On which both have a result."),
        Column(name="left out", about="States on which one of the two has none."),
    )
    pairs = findings.pairs_by(by) if by == "all" else findings.pairs_by(by, "reward")
    title = f"Pairs of ideators{'' if by == 'all' else f', {_TITLES[by].lower()}'}"
    rows = tuple(_pair_row(pair) for pair in pairs)
    return Table(key=f"pairs_by_{by}", title=title, columns=columns, rows=rows)


def _pair_row(pair: PairRow) -> tuple[Entry, ...]:
    return (
        *_group(pair),
        Entry(printable(pair.first)),
        Entry(printable(pair.second)),
        Entry(pair.measure if pair.measure == "reward" else f"{pair.measure} %"),
        entry_of(pair.difference, best=pair.significant, signed=True),
        Entry(f"{pair.wins} / {pair.ties} / {pair.losses}"),
        Entry(wording.p_text(pair.p_holm)),
        Entry(wording.p_text(pair.p_sign)),
        Entry(str(pair.states)),
        Entry(str(pair.left_out)),
    )


def shift_table(findings: Findings) -> Table:
    """Pair × category × how much more of its ideas the first gives to it."""
    columns = (
        Column(name="first", numeric=False),
        Column(name="second", numeric=False),
        Column(name="category", numeric=False),
        Column(name="shift", about="Share of the first less that of the second, in points."),
    )
    rows = tuple(
        (
            Entry(printable(shift.first)),
            Entry(printable(shift.second)),
            Entry(shift.category),
            entry_of(shift.difference, signed=True),
        )
        for shift in findings.shifts
    )
    return Table(key="shifts", title="Shifts of idea categories", columns=columns, rows=rows)


def entry_of(figure: Figure, *, best: bool = False, signed: bool = False) -> Entry:
    """A figure with its interval; `signed` shows the plus, too."""
    if figure.value is None:
        return Entry(wording.NONE)
    texts = [_text(figure.name, value, signed) for value in (figure.value, figure.low, figure.high)]
    interval = f"[{texts[1]}, {texts[2]}]" if figure.low is not None else ""
    return Entry(texts[0], interval, best)


def _text(name: str, value: float | None, signed: bool) -> str:
    if value is None:
        return ""
    if name.endswith("seconds"):
        return wording.seconds_text(value)
    digits = 3 if name == "reward" else 2 if name.startswith("gain") else 1
    shown = round(value, digits) + 0.0  # no minus before a zero
    return f"{shown:{'+' if signed and shown else ''}.{digits}f}"


def _grouped(by: Grouping) -> tuple[Column, ...]:
    return () if by == "all" else (Column(name=by, numeric=False),)


def _group(row: Row | PairRow) -> tuple[Entry, ...]:
    return () if row.by == "all" else (Entry(printable(row.group)),)


def _notes(by: Grouping) -> tuple[str, ...]:
    if by != "all":
        return ()
    return (
        "Each task weighs the same. [95 % interval: help states drawn again within their tasks]",
        "Masked: the runtime or the ideator itself broke; such answers are in no figure.",
    )
