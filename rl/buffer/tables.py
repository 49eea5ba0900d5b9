"""A buffer as tables of texts."""

from __future__ import annotations

from collections.abc import Sequence

from mle_ideator.benchmarks.reports.table import Column, Entry, Table
from mle_ideator.plain_text import printable
from mle_ideator.rl.buffer.views import BufferMetrics, Explanation

_ID = 12


def tables_of(metrics: BufferMetrics, likely: Sequence[Explanation]) -> tuple[Table, ...]:
    """How the buffer stands, task by task, and what is likely to be drawn next."""
    tables = (_by_task(metrics), _likely(likely))
    return tuple(table for table in tables if table.rows)


def _by_task(metrics: BufferMetrics) -> Table:
    columns = (
        Column(name="task", numeric=False),
        Column(name="states"),
        Column(name="unseen", about="No idea was executed from them yet."),
        Column(name="resting", about="Drawn a moment ago."),
        Column(name="retired", about="Nothing is to be learnt from them now."),
        Column(name="mean P", about="Learnability potential of those that are not retired."),
        Column(name="draws"),
        Column(name="next draw %", about="Of the next draw, expected."),
    )
    rows = tuple(
        _entries(
            printable(name),
            task.states,
            task.unseen,
            task.resting,
            task.retired,
            _number(task.mean_potential),
            task.draws,
            f"{100 * task.share_of_draws:.1f}",
        )
        for name, task in sorted(metrics.by_task.items())
    )
    return Table(
        key="tasks", title="Help states by task", columns=columns, rows=rows, notes=_notes(metrics)
    )


def _notes(metrics: BufferMetrics) -> tuple[str, ...]:
    shares = {
        "of the last groups had no variance": metrics.zero_variance_share,
        "of ideas had no readable format": metrics.invalid_share,
        "of ideas were lost by the runtime": metrics.masked_share,
    }
    known = [f"{share:.0%} {what}" for what, share in shares.items() if share is not None]
    return (
        f"{metrics.states} states, {metrics.drawable} of them drawable; {metrics.draws} draws so "
        f"far; the top {metrics.top_fraction:.0%} by potential are drawn from now.",
        *((f"{'; '.join(known)}.",) if known else ()),
    )


def _likely(likely: Sequence[Explanation]) -> Table:
    columns = (
        Column(name="state", numeric=False),
        Column(name="task", numeric=False),
        Column(name="kind", numeric=False),
        Column(name="P"),
        Column(name="μ", about="Mean reward of executed ideas."),
        Column(name="σ"),
        Column(name="ideas", about="Executed."),
        Column(name="chance %", about="Of being drawn first."),
        Column(name="why", numeric=False),
    )
    rows = tuple(
        _entries(
            one.id[:_ID],
            printable(one.task),
            one.kind,
            _number(one.potential),
            _number(one.mean),
            _number(one.std),
            one.executed,
            f"{100 * one.probability:.2f}",
            printable(one.text),
        )
        for one in likely
    )
    return Table(key="likely", title="What is drawn next, and why", columns=columns, rows=rows)


def _entries(*texts: object) -> tuple[Entry, ...]:
    return tuple(Entry(str(text)) for text in texts)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
