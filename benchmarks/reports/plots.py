"""Which plots a report has, each with what it shows in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mle_ideator.benchmarks.measures import figures
from mle_ideator.benchmarks.reports.by_task import growth
from mle_ideator.benchmarks.reports.detail_tables import category_name, task_head
from mle_ideator.benchmarks.reports.drawing import charts
from mle_ideator.benchmarks.reports.drawing.svg import write_plot
from mle_ideator.benchmarks.reports.drawing.theme import Look, looks_of
from mle_ideator.benchmarks.reports.naming import plain
from mle_ideator.benchmarks.reports.values import OfTask, Report
from mle_ideator.benchmarks.reports.wording import figure_text, interval_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_AXES: tuple[figures.Axis, ...] = ("step", "seconds")
_TIMES = (("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))
_GROWING = {
    "score": "mean score",
    "any_medal_rate": "runs with a medal, %",
    "valid_rate": "runs with a valid solution, %",
}


class Plot(msgspec.Struct, frozen=True, kw_only=True):
    """A drawn figure, its file's name, and what it shows."""

    name: str
    title: str
    caption: str
    alt: str
    """Its numbers in words, for those who do not see it."""
    figure: Figure


def plots_of(report: Report) -> Iterator[Plot]:
    """All over tasks and seeds, in the order of the page. They are drawn one at a time."""
    looks = looks_of([named.name for named in report.contenders])
    if not report.runs:
        return
    yield _scores(report, looks)
    for name in _GROWING:
        for axis in _AXES:
            if any(curve.points for curve in _curves(report, name, axis).values()):
                yield _growing(report, looks, name, axis)
    if any(category.ideas for c in report.figures.contenders for category in c.categories):
        yield _categories(report, looks, "share")
        yield _categories(report, looks, "improved")


def grid_plot(report: Report) -> Plot:
    """Every task beside the others."""
    looks = looks_of([named.name for named in report.contenders])
    return Plot(
        name="tasks",
        title="Scores by task",
        caption="Best solution so far, mean over seeds; the band is from the worst to the best.",
        alt="; ".join(_task_alt(task) for task in report.tasks),
        figure=charts.grid(
            [(_task_axis(t, task_head(t)), _bands(report, t)) for t in report.tasks], looks
        ),
    )


def task_plot(report: Report, task: OfTask) -> Plot:
    """One task, as a little chart."""
    looks = looks_of([named.name for named in report.contenders])
    return Plot(
        name=f"task-{report.tasks.index(task) + 1}",
        title=task_head(task),
        caption="Best solution so far, mean over seeds; the band is from the worst to the best.",
        alt=_task_alt(task),
        figure=charts.small(_bands(report, task), looks, _task_axis(task, "")),
    )


def write_plots(report: Report, folder: Path) -> tuple[Path, ...]:
    """Each plot as SVG and PDF, for a paper."""
    written: list[Path] = []
    for plot in (*plots_of(report), *([grid_plot(report)] if report.tasks else [])):
        written += write_plot(plot.figure, folder / plot.name)
    return tuple(written)


def _scores(report: Report, looks: dict[str, Look]) -> Plot:
    theirs = [
        (report.name_of(c.contender), c.figure("avg_at_k")) for c in report.figures.contenders
    ]
    rows = [charts.Point(name=n, value=f.value, low=f.low, high=f.high) for n, f in theirs]
    return Plot(
        name="scores",
        title="Avg@k",
        caption="Mean score over tasks and seeds, with its 95 % interval.",
        alt=_listed((name, f"{figure_text(f)} {interval_text(f)}") for name, f in theirs),
        figure=charts.points(rows, looks, charts.Axis(x="Avg@k", y="")),
    )


def _curves(report: Report, name: str, axis: figures.Axis) -> dict[str, figures.Curve]:
    return {
        report.name_of(c.contender): curve
        for c in report.figures.contenders
        for curve in c.curves
        if (curve.name, curve.axis) == (name, axis)
    }


def _growing(report: Report, looks: dict[str, Look], name: str, axis: figures.Axis) -> Plot:
    curves = _curves(report, name, axis)
    unit, size = _unit(curves.values(), axis)
    bands = [_band(label, curve.points, size) for label, curve in curves.items() if curve.points]
    what = charts.Axis(x=unit, y=_GROWING[name], whole=axis == "step", bottom=0)
    ends = [(label, f"{c.points[-1].value:.1f}") for label, c in curves.items() if c.points]
    return Plot(
        name=f"{name.replace('_', '-')}-by-{axis}",
        title=f"{_GROWING[name].capitalize()}, by {unit}",
        caption="By the solution best by validation until then; the band is the 95 % interval.",
        alt=f"In the end: {_listed(ends)}",
        figure=charts.lines(bands, looks, what),
    )


def _unit(curves: Iterable[figures.Curve], axis: figures.Axis) -> tuple[str, float]:
    """In which unit x is told, and how long that is."""
    if axis == "step":
        return "step", 1.0
    end = max((curve.points[-1].at for curve in curves if curve.points), default=0.0)
    return next((unit for unit in _TIMES if end >= 3 * unit[1]), _TIMES[-1])


def _categories(report: Report, looks: dict[str, Look], which: str) -> Plot:
    contenders = report.figures.contenders
    used = [
        place for place, _ in enumerate(contenders[0].categories)
        if any(c.categories[place].ideas for c in contenders)
    ]  # fmt: skip
    names = [category_name(contenders[0].categories[place]) for place in used]
    series = {
        report.name_of(c.contender): [_point(c.categories[place], which) for place in used]
        for c in contenders
        if any(category.ideas for category in c.categories)
    }
    axis = {"share": "share of ideas, %", "improved": "ideas that improved, %"}[which]
    captions = {
        "share": "What ideas are about, by their foremost category.",
        "improved": "Ideas after which the first solution was a new best, of those in a category.",
    }
    return Plot(
        name=f"ideas-{which}",
        title=axis.capitalize(),
        caption=f"{captions[which]} Lines are 95 % intervals.",
        alt=_listed(
            (n, _listed(zip(names, map(_percent, v), strict=True))) for n, v in series.items()
        ),
        figure=charts.groups(names, series, looks, charts.Axis(x=axis, y="")),
    )


def _point(category: figures.CategoryFigures, which: str) -> charts.Point:
    figure = category.share if which == "share" else category.improved
    name = category_name(category)
    return charts.Point(name=name, value=figure.value, low=figure.low, high=figure.high)


def _percent(point: charts.Point) -> str:
    return "none" if point.value is None else f"{point.value:.0f} %"


def _bands(report: Report, task: OfTask) -> list[charts.Band]:
    bands = []
    for own in task.contenders:
        runs = [
            run.measures for run in report.runs
            if (run.contender, run.measures.cell.task) == (own.contender, task.task)
        ]  # fmt: skip
        if points := growth(runs, task.kind):
            bands.append(_band(own.contender, points, 1.0))
    return bands


def _band(name: str, points: Sequence[figures.Point], size: float) -> charts.Band:
    banded = all(point.low is not None and point.high is not None for point in points)
    return charts.Band(
        name=name,
        x=[point.at / size for point in points],
        y=[point.value for point in points],
        low=[point.low or 0.0 for point in points] if banded else (),
        high=[point.high or 0.0 for point in points] if banded else (),
    )


def _task_axis(task: OfTask, title: str) -> charts.Axis:
    name = plain(task.metric.name) if task.metric else "score"
    arrow = ("↑" if task.metric.higher_is_better else "↓") if task.metric else ""
    return charts.Axis(title=title, x="step", y=f"{name} {arrow}" if not title else "", whole=True)


def _task_alt(task: OfTask) -> str:
    scores = [
        (own.contender, f"{own.score:.5g}") for own in task.contenders if own.score is not None
    ]
    return f"{task_head(task)}: {_listed(scores) or 'no valid solution'}"


def _listed(pairs: Iterable[tuple[str, str]]) -> str:
    return "; ".join(f"{name} {text}".strip() for name, text in pairs)
