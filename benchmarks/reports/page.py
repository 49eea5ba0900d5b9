"""The report as one HTML page that needs nothing but itself: no network, no script to be read.

Whatever agents or users wrote is escaped by the templates, and made printable before.
"""

from __future__ import annotations

import os
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import yaml

from mle_ideator.benchmarks.reports import wording
from mle_ideator.benchmarks.reports.detail_tables import rows_of_task, task_head
from mle_ideator.benchmarks.reports.drawing.svg import inline_svg
from mle_ideator.benchmarks.reports.drawing.theme import DARK, LIGHT, looks_of
from mle_ideator.benchmarks.reports.naming import marked, plain
from mle_ideator.benchmarks.reports.plots import Plot, plots_of, task_plot
from mle_ideator.benchmarks.reports.table import Entry
from mle_ideator.benchmarks.reports.tables import tables_of
from mle_ideator.benchmarks.reports.values import OfTask, Report, ReportedRun
from mle_ideator.files import replace_file
from mle_ideator.plain_text import printable
from mle_ideator.types import Value

if TYPE_CHECKING:
    from jinja2 import Environment


_MOST_SENTENCES = 6
"""With more pairs only those are named that can be told apart."""


class Picture(Value, frozen=True, kw_only=True):
    """A plot, ready for the page."""

    name: str
    title: str
    caption: str
    svg: str


class TaskSection(Value, frozen=True, kw_only=True):
    """What the page says of one task."""

    anchor: str
    head: str
    title: str
    baseline: str
    picture: Picture
    rows: tuple[tuple[Entry, ...], ...]
    runs: tuple[dict[str, str], ...]


def write_page(report: Report, path: Path, *, links: bool) -> None:
    """Write the page. With `links`, runs lead to their own pages in `pages_folder(path)`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = render("report", **_said(report, path, links=links))
    replace_file(path, text.encode("utf-8", "replace"))


def pages_folder(path: Path) -> Path:
    """Where the pages of single runs lie: beside the page, named after it."""
    return path.with_name(f"{path.stem}_runs")


def render(template: str, **values: Any) -> str:
    """The page of that template, its style included."""
    return (
        _environment().get_template(f"{template}.html.j2").render(light=LIGHT, dark=DARK, **values)
    )


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader(__package__, "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
    )
    made.filters["printable"] = printable
    made.filters["as_yaml"] = partial(yaml.safe_dump, sort_keys=False, allow_unicode=True)
    return made


def _said(report: Report, path: Path, *, links: bool) -> dict[str, Any]:
    shown = {table.key: table for table in tables_of(report)}
    return {
        "report": report,
        "tables": shown,
        "pictures": [_picture(plot) for plot in plots_of(report)],
        "legend": _legend(report),
        "verdicts": verdicts(report),
        "tasks": [_section(report, task, path, links=links) for task in report.tasks],
        "definitions": report.definitions,
    }


def _picture(plot: Plot) -> Picture:
    svg = inline_svg(plot.figure, plot.name, f"{plot.title}. {plot.alt}")
    return Picture(name=plot.name, title=plot.title, caption=plot.caption, svg=svg)


def _legend(report: Report) -> list[tuple[int, str]]:
    """The number of each contender's colour, and its name."""
    looks = looks_of([named.name for named in report.contenders])
    return [
        (LIGHT.index(looks[n.name].color), marked(n.name, n.flagged)) for n in report.contenders
    ]


def verdicts(report: Report) -> list[str]:
    """What the comparison came to, in sentences: what the test says, and no more."""
    said = []
    pairs = report.figures.comparisons
    told = [pair for pair in pairs if pair.significant]
    for compared in pairs if len(pairs) <= _MOST_SENTENCES else told:
        first, second = report.name_of(compared.first), report.name_of(compared.second)
        difference = compared.difference
        if difference.value is None:
            said.append(f"{first} and {second} have no cell in common.")
            continue
        if difference.value < 0:
            first, second = second, first
        tasks = wording.counted(compared.tasks, "task")
        by = f"{abs(difference.value):.1f} points of Avg@k on {tasks}"
        p = wording.p_text(compared.p_holm)
        if compared.significant:
            said.append(f"{first} is better than {second} by {by} (p {p}).")
        else:
            said.append(f"{first} and {second} can not be told apart: {by} between them (p {p}).")
    if len(pairs) > max(_MOST_SENTENCES, len(told)):
        rest = wording.counted(len(pairs) - len(told), "pair")
        said.append(f"{rest} of contenders can not be told apart.")
    return said


def _section(report: Report, task: OfTask, path: Path, *, links: bool) -> TaskSection:
    plot = task_plot(report, task)
    runs = [run for run in report.runs if run.measures.cell.task == task.task]
    return TaskSection(
        anchor=plot.name,
        head=task_head(task),
        title=task.title,
        baseline=wording.score_text(task.baseline),
        picture=_picture(plot),
        rows=rows_of_task(task),
        runs=tuple(_run_row(run, task, path, report, links=links) for run in runs),
    )


def _run_row(
    run: ReportedRun, task: OfTask, path: Path, report: Report, *, links: bool
) -> dict[str, str]:
    one = run.measures
    return {
        "contender": marked(run.contender, bool(one.flags)),
        "seed": str(one.cell.seed),
        "state": wording.state_text(run),
        "score": wording.run_score(one, task.kind),
        "rank": f"{one.human_rank:.3f}" if one.ranked else wording.NONE,
        "medal": one.medal or wording.NONE,
        "steps": str(one.steps),
        "ideas": f"{one.improvements} of {len(one.ideas)}",
        "time": wording.seconds_text(one.duration_s),
        "outcome": plain(wording.outcome_text(one)),
        "page": quote(f"{pages_folder(path).name}/{run.page}") if links else "",
        "folder": link(run_folder(report, run), path),
    }


def run_folder(report: Report, run: ReportedRun) -> Path:
    """Where the run lies."""
    folders = {source.label: Path(source.folder) for source in report.sources}
    return folders[run.source] / run.measures.folder


def link(target: Path, page: Path) -> str:
    """A link from a page to a file or folder, relative, so that both can be moved together."""
    return quote(os.path.relpath(target.resolve(), page.resolve().parent))
