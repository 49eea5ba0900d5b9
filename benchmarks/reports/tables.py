"""The tables of a report, as texts in rows and columns: terminal and page show the same ones.

Flagged runs stand in every table, marked; what failed or is missing is counted and named. A figure
is marked as the best only where the paired test says so, against every other contender.
"""

from __future__ import annotations

from mle_ideator.benchmarks.measures.figures import ContenderFigures, PairedComparison
from mle_ideator.benchmarks.measures.values import Contender
from mle_ideator.benchmarks.reports import wording
from mle_ideator.benchmarks.reports.detail_tables import (
    absent_table,
    category_table,
    flag_table,
    shift_table,
    task_table,
)
from mle_ideator.benchmarks.reports.table import (
    Column,
    Entry,
    Table,
    entry_of,
    flag_notes,
    marked_name,
)
from mle_ideator.benchmarks.reports.values import Report

_RESULTS = {
    "Avg@k": "avg_at_k",
    "Best@k": "best_at_k",
    "HumanRank": "human_rank",
    "valid %": "valid_rate",
    "above median %": "above_median_rate",
    "any medal %": "any_medal_rate",
    "gold %": "gold_rate",
    "silver %": "silver_rate",
    "bronze %": "bronze_rate",
}
_EFFORT = {
    "first valid step": "steps_to_first_valid",
    "steps": "steps",
    "help requests": "help_requests",
    "improving ideas %": "improving_share",
    "time": "duration_s",
    "tokens": "tokens",
    "cost": "cost_usd",
}


def comparison_table(report: Report) -> Table:
    """Contender × what its runs came to, with 95 % intervals."""
    return _of_figures(report, "comparison", "Comparison", _RESULTS, _notes_of_results(report))


def effort_table(report: Report) -> Table:
    """Contender × what its runs took."""
    title = "Steps, help and cost of a run"
    return _of_figures(report, "effort", title, _EFFORT, flag_notes(report))


def _of_figures(
    report: Report, key: str, title: str, wanted: dict[str, str], notes: tuple[str, ...]
) -> Table:
    columns = (
        Column(name="contender", numeric=False),
        Column(name="runs", about="Runs that were made, of those that were asked for."),
        *(Column(name=name, about=report.definitions[figure]) for name, figure in wanted.items()),
    )
    rows = []
    for theirs in report.figures.contenders:
        best = "avg_at_k" if is_best(report, theirs.contender) else ""
        figures = [entry_of(theirs.figure(name), best == name) for name in wanted.values()]
        rows.append((Entry(marked_name(report, theirs.contender)), _runs(theirs), *figures))
    return Table(key=key, title=title, columns=columns, rows=tuple(rows), notes=notes)


def _runs(theirs: ContenderFigures) -> Entry:
    made, missing = theirs.counts.runs, theirs.counts.missing
    return Entry(f"{made} of {made + missing}" if missing else str(made))


def _notes_of_results(report: Report) -> tuple[str, ...]:
    contenders = report.figures.contenders
    notes = [f"Score: {contenders[0].scoring}. [95 % interval]"] if contenders else []
    if len(contenders) > 1:
        told = any(is_best(report, theirs.contender) for theirs in contenders)
        notes.append(
            "* better than every other contender: paired test over tasks, p < 0.05 (Holm)."
            if told
            else "No contender is better than every other one: the paired test tells none apart."
        )
    for theirs in contenders:
        if odd := _odd(theirs):
            notes.append(f"{report.name_of(theirs.contender)}: {odd}.")
    return (*notes, *flag_notes(report))


def _odd(theirs: ContenderFigures) -> str:
    """What is odd about the runs of one contender, counted."""
    counts = theirs.counts
    parts = {
        "missing": counts.missing,
        "failed": counts.failed,
        "not ended": counts.unended,
        "invalid in all": counts.invalid,
        "on tasks without a leaderboard": counts.unranked,
    }
    said = [f"{number} {what}" for what, number in parts.items() if number]
    if counts.fewest_seeds < counts.seeds:
        said.append(f"between {counts.fewest_seeds} and {counts.seeds} seeds a task")
    return ", ".join(said)


def is_best(report: Report, contender: Contender) -> bool:
    """Is it better than every other contender, beyond chance?"""
    own = [c for c in report.figures.comparisons if contender in (c.first, c.second)]
    others = len(report.figures.contenders) - 1
    return others > 0 and len(own) == others and all(_wins(c, contender) for c in own)


def _wins(compared: PairedComparison, contender: Contender) -> bool:
    difference = compared.difference.value
    if not compared.significant or difference is None:
        return False
    return (difference if compared.first == contender else -difference) > 0


def paired_table(report: Report) -> Table:
    """Every pair of contenders on the cells that both have."""
    columns = (
        Column(name="first", numeric=False),
        Column(name="second", numeric=False),
        Column(name="difference", about="Avg@k of the first less that of the second."),
        Column(name="tasks", about="Tasks on which the first is better, equal, worse."),
        Column(name="p", about="Two-sided, over tasks; corrected for all pairs (Holm)."),
        Column(name="effect", about="Rank-biserial correlation, −1 to 1."),
        Column(name="test", numeric=False),
        Column(name="cells", about="Cells (task and seed) that both have."),
        Column(name="left out", about="Cells that only one of the two has."),
    )
    rows = tuple(_paired_row(report, compared) for compared in report.figures.comparisons)
    return Table(
        key="paired",
        title="Pairs of contenders, on the same tasks and seeds",
        columns=columns,
        rows=rows,
        notes=flag_notes(report),
    )


def _paired_row(report: Report, compared: PairedComparison) -> tuple[Entry, ...]:
    effect = wording.NONE if compared.effect is None else f"{compared.effect:+.2f}"
    return (
        Entry(marked_name(report, compared.first)),
        Entry(marked_name(report, compared.second)),
        entry_of(compared.difference, compared.significant),
        Entry(f"{compared.wins} / {compared.ties} / {compared.losses}"),
        Entry(wording.p_text(compared.p_holm)),
        Entry(effect),
        Entry(compared.test),
        Entry(str(compared.pairs)),
        Entry(str(compared.only_first + compared.only_second)),
    )


def tables_of(report: Report) -> tuple[Table, ...]:
    """All that have rows, in the order in which they are read."""
    makers = (
        comparison_table,
        paired_table,
        task_table,
        category_table,
        shift_table,
        effort_table,
        absent_table,
        flag_table,
    )
    return tuple(table for make in makers if (table := make(report)).rows)
