"""The kinds of charts. They know data, not runs; names of the series decide how these look."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from mle_ideator.benchmarks.reports.drawing.theme import Look, drawing
from mle_ideator.plain_text import one_line, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LABEL_CHARS = 30
_LEGEND_COLUMNS = 3
_TICKS = [1, 2, 2.5, 5, 10]
_CHAR = 0.072
"""Inches that a character takes, on average."""
_GAP = 0.065
"""Least distance of two labels at the ends of lines, as a share of the axis."""


class Band(msgspec.Struct, frozen=True, kw_only=True):
    """A line with the interval around it, all of the same length. It holds from point to point."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """A value with its interval, in a row of its own; `None` where there is nothing to draw."""

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None


class Axis(msgspec.Struct, frozen=True, kw_only=True):
    """What stands at the axes of a chart."""

    title: str = ""
    x: str
    y: str
    whole: bool = False
    """Does x count?"""
    bottom: float | None = None
    """Where y begins, if that is known."""


@contextmanager
def _figure(
    width: float, height: float, *, left: float, right: float, top: float, bottom: float = 0.45
) -> Iterator[Figure]:
    """A new figure; inches, also of the margins around its axes.

    They are told, not found: matplotlib's own layouts take longer than all the rest.
    """
    from matplotlib.figure import Figure

    width, height = left + width + right, top + height + bottom
    with drawing():
        figure = Figure(figsize=(width, height))
        figure.subplots_adjust(
            left=left / width,
            right=1 - right / width,
            top=1 - top / height,
            bottom=bottom / height,
        )
        yield figure


def _room(names: Iterable[str]) -> float:
    """Inches that the longest of some names takes."""
    return 0.15 + _CHAR * max((len(label(name)) for name in names), default=0)


def lines(bands: Sequence[Band], looks: dict[str, Look], axis: Axis) -> Figure:
    """Steps with bands, each line named at its end."""
    right = _room(band.name for band in bands)
    with _figure(3.9, 2.5, left=0.6, right=right, top=0.15) as figure:
        axes = figure.subplots()
        _dress(axes, axis)
        for band in _to_one_end(bands):
            _draw(axes, band, looks[band.name])
        axes.set_xlim(left=0)
        if axis.bottom is not None:
            axes.set_ylim(bottom=axis.bottom)
        _name_ends(axes, bands, looks)
    return figure


def grid(charts: Sequence[tuple[Axis, Sequence[Band]]], looks: dict[str, Look]) -> Figure:
    """Small multiples: one little chart beside the other, under one legend."""
    columns = min(4, max(1, len(charts)))
    rows = -(-len(charts) // columns)
    drawn = [band.name for _, bands in charts for band in bands]
    room = _legend_room(drawn)
    with _figure(2.1 * columns, 1.75 * rows, left=0.5, right=0.1, top=0.3 + room) as figure:
        figure.subplots_adjust(wspace=0.34, hspace=0.52)
        all_axes = figure.subplots(rows, columns, squeeze=False).flat
        for axes, (axis, bands) in zip(all_axes, charts, strict=False):
            _dress(axes, axis)
            for band in _to_one_end(bands):
                _draw(axes, band, looks[band.name])
        for axes in list(all_axes)[len(charts) :]:
            axes.set_visible(False)
        _legend(figure, drawn, looks)
    return figure


def small(bands: Sequence[Band], looks: dict[str, Look], axis: Axis) -> Figure:
    """One little chart without names: the page around it has the legend."""
    with _figure(2.8, 1.6, left=0.6, right=0.1, top=0.1) as figure:
        axes = figure.subplots()
        _dress(axes, axis)
        for band in _to_one_end(bands):
            _draw(axes, band, looks[band.name])
    return figure


def points(rows: Sequence[Point], looks: dict[str, Look], axis: Axis) -> Figure:
    """Values with intervals, a row each, the first one on top."""
    left = _room(row.name for row in rows)
    with _figure(3.9, 0.1 + 0.26 * len(rows), left=left, right=0.2, top=0.1) as figure:
        axes = figure.subplots()
        _dress(axes, axis)
        axes.grid(visible=False, axis="y")
        for place, row in enumerate(rows):
            _draw_point(axes, place, row, looks[row.name])
        axes.set_yticks(range(len(rows)), [label(row.name) for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
    return figure


def groups(
    names: Sequence[str],
    series: Mapping[str, Sequence[Point]],
    looks: dict[str, Look],
    axis: Axis,
) -> Figure:
    """Values with intervals, those of all series below each other in each group."""
    height = (0.12 + 0.12 * len(series)) * len(names)
    room = _legend_room(list(series))
    apart = 0.75 / max(1, len(series))
    with _figure(3.9, height, left=_room(names), right=0.2, top=0.1 + room) as figure:
        axes = figure.subplots()
        _dress(axes, axis)
        axes.grid(visible=False, axis="y")
        for number, (name, values) in enumerate(series.items()):
            for place, point in enumerate(values):
                if point.value is not None:
                    at = place + apart * (number - (len(series) - 1) / 2)
                    _draw_point(axes, at, point, looks[name])
        axes.set_yticks(range(len(names)), [label(name) for name in names])
        axes.set_ylim(len(names) - 0.5, -0.5)
        _legend(figure, list(series), looks)
    return figure


def label(name: str) -> str:
    """A name as it stands in a plot: short, on one line, harmless."""
    return one_line(printable(name), _LABEL_CHARS)


def _dress(axes: Axes, axis: Axis) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_title(label(axis.title) if axis.title else "")
    axes.set_xlabel(axis.x)
    axes.set_ylabel(axis.y)
    axes.tick_params(length=2.5)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, steps=_TICKS, integer=axis.whole))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=_TICKS))


def _draw(axes: Axes, band: Band, look: Look) -> None:
    axes.step(band.x, band.y, where="post", color=look.color, linestyle=look.line)
    axes.plot(band.x[-1:], band.y[-1:], color=look.color, marker=look.marker, clip_on=False)
    if band.low:
        axes.fill_between(
            band.x, band.low, band.high, step="post", color=look.color, alpha=0.16, linewidth=0
        )


def _to_one_end(bands: Sequence[Band]) -> list[Band]:
    """All of them held until where the longest ends."""
    end = max((band.x[-1] for band in bands if band.x), default=0.0)
    return [_until(band, end) if band.x and band.x[-1] < end else band for band in bands]


def _until(band: Band, end: float) -> Band:
    last = {
        name: [*values, values[-1]]
        for name in ("y", "low", "high")
        if (values := getattr(band, name))
    }
    return msgspec.structs.replace(band, x=[*band.x, end], **last)


def _draw_point(axes: Axes, place: float, row: Point, look: Look) -> None:
    if row.value is None:
        axes.annotate("no value", (0.01, place), xycoords=("axes fraction", "data"), va="center")
        return
    if row.low is not None and row.high is not None:
        axes.plot(
            [row.low, row.high],
            [place, place],
            color=look.color,
            linewidth=2.2,
            solid_capstyle="butt",
        )
    axes.plot([row.value], [place], color=look.color, marker=look.marker, markersize=5.5)


def _name_ends(axes: Axes, bands: Sequence[Band], looks: dict[str, Look]) -> None:
    """Each line's name at its end, moved apart where ends meet."""
    drawn = [band for band in bands if len(band.y)]
    bottom, top = axes.get_ylim()
    wanted = [(band.y[-1] - bottom) / ((top - bottom) or 1) for band in drawn]
    for band, height in zip(drawn, _apart(wanted, _GAP), strict=True):
        axes.annotate(
            label(band.name),
            (1.015, height),
            xycoords="axes fraction",
            color=looks[band.name].color,
            va="center",
            annotation_clip=False,
        )


def _apart(wanted: Sequence[float], gap: float) -> list[float]:
    """Heights as near as can be to those wanted, in the same order, at least `gap` apart."""
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    groups: list[list[int]] = []
    for index in order:
        groups.append([index])
        while len(groups) > 1 and _foot(groups[-1], wanted, gap) < _head(groups[-2], wanted, gap):
            groups[-2:] = [groups[-2] + groups[-1]]
    heights = [0.0] * len(wanted)
    for group in groups:
        for place, index in enumerate(group):
            heights[index] = _centre(group, wanted) + gap * (place - (len(group) - 1) / 2)
    return heights


def _centre(group: Sequence[int], wanted: Sequence[float]) -> float:
    return sum(wanted[index] for index in group) / len(group)


def _foot(group: Sequence[int], wanted: Sequence[float], gap: float) -> float:
    return _centre(group, wanted) - gap * len(group) / 2


def _head(group: Sequence[int], wanted: Sequence[float], gap: float) -> float:
    return _centre(group, wanted) + gap * len(group) / 2


def _legend(figure: Figure, drawn: Sequence[str], looks: dict[str, Look]) -> None:
    """Above all axes, the names in the order of their looks."""
    from matplotlib.lines import Line2D

    names = [name for name in looks if name in set(drawn)]
    handles = [
        Line2D([], [], color=look.color, linestyle=look.line, marker=look.marker)
        for look in (looks[name] for name in names)
    ]
    labels = [label(name) for name in names]
    figure.legend(handles, labels, loc="upper left", ncols=_LEGEND_COLUMNS, frameon=False)


def _legend_room(drawn: Sequence[str]) -> float:
    """Inches that the legend takes."""
    return 0.12 + 0.2 * -(-len(set(drawn)) // _LEGEND_COLUMNS)
