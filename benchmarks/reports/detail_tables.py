"""The tables behind the comparison: tasks, ideas, and what needs a second look."""

from __future__ import annotations

from mle_ideator.benchmarks.measures.figures import CategoryFigures, PairedComparison
from mle_ideator.benchmarks.measures.values import Flag
from mle_ideator.benchmarks.reports import wording
from mle_ideator.benchmarks.reports.naming import marked, plain
from mle_ideator.benchmarks.reports.table import (
    Column,
    Entry,
    Table,
    entry_of,
    flag_notes,
    marked_name,
)
from mle_ideator.benchmarks.reports.values import OfTask, OnTask, Report

UNTOLD = "can not be told"


def task_table(report: Report) -> Table:
    """Task × contender, means over seeds."""
    columns = (
        Column(name="task", numeric=False),
        Column(name="contender", numeric=False),
        Column(name="score", about="Mean of the valid runs' final scores [worst, best]."),
        Column(name="HumanRank", about=report.definitions["human_rank"]),
        Column(name="medals", about="Of its runs.", numeric=False),
        Column(name="valid", about="Runs with a valid final solution, of all."),
        Column(name="first valid", about="Mean step of the first valid solution."),
    )
    rows = []
    for task in report.tasks:
        head = task_head(task)
        for place, row in enumerate(rows_of_task(task)):
            rows.append((Entry("" if place else head), *row))
    kinds = {task.kind for task in report.tasks}
    notes = (f"Scores are {' or '.join(sorted(kinds))} ones. ↑ higher, ↓ lower is better.",)
    return Table(
        key="tasks",
        title="Tasks, means over seeds",
        columns=columns,
        rows=tuple(rows),
        notes=(*notes, *flag_notes(report)),
    )


def task_head(task: OfTask) -> str:
    """`flights-late, auc ↑`."""
    if task.metric is None:
        return task.name
    arrow = "↑" if task.metric.higher_is_better else "↓"
    return f"{task.name}, {plain(task.metric.name)} {arrow}"


def rows_of_task(task: OfTask) -> tuple[tuple[Entry, ...], ...]:
    """One task's part of `task_table`, without the column that names it."""
    return tuple(_on_task(own) for own in task.contenders)


def _on_task(own: OnTask) -> tuple[Entry, ...]:
    spread = own.valid > 1
    ends = f"[{wording.score_text(own.worst)}, {wording.score_text(own.best)}]" if spread else ""
    rank = wording.NONE if own.human_rank is None else f"{own.human_rank:.3f}"
    first = own.steps_to_first_valid
    return (
        Entry(marked(own.contender, own.flagged)),
        Entry(wording.score_text(own.score), ends),
        Entry(rank),
        Entry(wording.medals_text(own.medals)),
        Entry(f"{own.valid} of {own.runs}"),
        Entry(wording.NONE if first is None else f"{first:.1f}"),
    )


def category_table(report: Report) -> Table:
    """Idea category × contender: how many, what share, how many of them improved."""
    contenders = report.figures.contenders
    columns = (
        Column(name="ideas about", numeric=False),
        *(Column(name=marked_name(report, theirs.contender)) for theirs in contenders),
    )
    by_place = zip(*(theirs.categories for theirs in contenders), strict=True)
    rows = tuple((Entry(category_name(line[0])), *map(_category_entry, line)) for line in by_place)
    notes = ("Ideas, their share in %, and in brackets the % of them that improved.",)
    return Table(
        key="categories",
        title="What ideas are about",
        columns=columns,
        rows=rows,
        notes=(*notes, *flag_notes(report)),
    )


def category_name(figures: CategoryFigures) -> str:
    return figures.category or UNTOLD


def _category_entry(figures: CategoryFigures) -> Entry:
    if not figures.ideas:
        return Entry("0")
    share, improved = figures.share.value or 0.0, figures.improved.value or 0.0
    return Entry(f"{figures.ideas} · {share:.0f} %", f"({improved:.0f} %)")


def shift_table(report: Report) -> Table:
    """Idea category × pair of contenders: how much more of its ideas the first gives to it."""
    compared = [
        pair
        for pair in report.figures.comparisons
        if any(shift.difference.value is not None for shift in pair.shifts)
    ]
    columns = (
        Column(name="ideas about", numeric=False),
        *(Column(name=_pair_name(report, pair)) for pair in compared),
    )
    by_place = zip(*(pair.shifts for pair in compared), strict=True)
    rows = tuple(
        (Entry(line[0].category or UNTOLD), *(entry_of(shift.difference) for shift in line))
        for line in by_place
    )
    notes = ("Share of the first's ideas less share of the second's, in points [95 % interval].",)
    return Table(
        key="shifts",
        title="How ideas shift",
        columns=columns,
        rows=rows,
        notes=(*notes, *flag_notes(report)),
    )


def _pair_name(report: Report, pair: PairedComparison) -> str:
    return f"{marked_name(report, pair.first)} − {marked_name(report, pair.second)}"


def absent_table(report: Report) -> Table:
    """Runs that failed or have not ended, and cells without a run, each by name."""
    columns = tuple(
        Column(name=name, numeric=name == "seed")
        for name in ("task", "contender", "seed", "state", "why")
    )
    runs = [
        (run.measures.cell, marked(run.contender, bool(run.measures.flags)), run)
        for run in report.runs
        if run.state != "done"
    ]
    rows = [
        (report.task_name(cell.task), name, cell.seed, _state(run.state), run.measures.detail)
        for cell, name, run in runs
    ]
    rows += [
        (report.task_name(a.cell.task), a.contender, a.cell.seed, "missing", a.why)
        for a in report.absent
    ]
    entries = tuple(tuple(Entry(plain(str(text))) for text in row) for row in rows)
    return Table(key="absent", title="Failed, not ended, missing", columns=columns, rows=entries)


def _state(state: str) -> str:
    return {"unended": "not ended"}.get(state, state)


def flag_table(report: Report) -> Table:
    """Each flag of each flagged solution."""
    columns = tuple(
        Column(name=name, numeric=name in ("seed", "line"))
        for name in ("task", "contender", "seed", "flag", "line", "what")
    )
    rows = [
        (
            report.task_name(run.measures.cell.task),
            marked(run.contender, 1),
            run.measures.cell.seed,
            *_flag(flag),
        )
        for run in report.flagged
        for flag in run.measures.flags
    ]
    entries = tuple(tuple(Entry(plain(str(text))) for text in row) for row in rows)
    return Table(
        key="flags",
        title="Flagged solutions",
        columns=columns,
        rows=entries,
        notes=("A flag is a reason to look at a solution, no verdict; no run is left out.",),
    )


def _flag(flag: Flag) -> tuple[str, str, str]:
    return flag.code, str(flag.line) if flag.line else "all", flag.message
