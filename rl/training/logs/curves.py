"""The curves of runs in one figure: over steps or executions, several seeds as median and band."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from mle_ideator.benchmarks.reports.drawing.theme import check_matplotlib, drawing, looks_of
from mle_ideator.errors import UsageError
from mle_ideator.rl.training.logs.lines import metrics_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mle_ideator.benchmarks.reports.drawing.theme import Look

Axis = Literal["step", "executions"]
Floats = NDArray[np.float64]

SHOWN = ("reward", "invalid_rate", "entropy")
_POINTS = 400
_TITLES = {
    "reward": "Reward",
    "invalid_rate": "Share of invalid answers",
    "entropy": "Entropy of a token (nats)",
    "zero_variance": "Share of groups without variance",
    "best_of_group": "Best reward of a group",
    "improved_rate": "Share of ideas that improved",
}


def curves(
    runs: Mapping[str, Sequence[Path]],
    file: Path,
    *,
    names: Sequence[str] = SHOWN,
    x: Axis = "step",
    smooth: int = 1,
) -> None:
    """Draw metrics of run folders into a file, whose suffix tells the format (`.svg`, `.png`).

    `runs` has the folders of each line's seeds under the line's name: the line is their median, the
    band goes from the least to the greatest, both as far as all of them got. `smooth` is the steps
    that each value is a mean over. Raises `UsageError` without matplotlib, and for a folder that is
    no run.
    """
    check_matplotlib()
    told = {label: [metrics_of(folder) for folder in folders] for label, folders in runs.items()}
    with drawing():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(3.6 * len(names), 3.0), layout="constrained")
        panels = figure.subplots(1, len(names), squeeze=False)[0]
        for axes, name in zip(panels, names, strict=True):
            axes.set(title=_TITLES.get(name, name), xlabel=f"{x}s" if x == "step" else x)
            for (label, seeds), look in zip(told.items(), looks_of([*told]).values(), strict=True):
                lines = [line for run in seeds if (line := _line(run, name, x, smooth)) is not None]
                if lines:
                    _draw(axes, label, lines, look)
        panels[0].legend(frameon=False)
        figure.savefig(file)


def _line(
    run: Sequence[Mapping[str, float | None]], name: str, x: Axis, smooth: int
) -> tuple[Floats, Floats] | None:
    """A run's values over x; `None` if it never told them."""
    told = [(row.get(x), row.get(name)) for row in run]
    known = [(place, value) for place, value in told if place is not None and value is not None]
    if not known:
        return None
    places, values = np.array(known, float).T
    return places, _smoothed(values, smooth)


def _smoothed(values: Floats, steps: int) -> Floats:
    """Each value as the mean of itself and those before it, `steps` in all."""
    if steps < 1:
        raise UsageError("curves: smooth must be at least 1 step.")
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - steps, 0)
    smoothed: Floats = (sums[ends] - sums[starts]) / (ends - starts)
    return smoothed


def _draw(axes: Axes, label: str, lines: Sequence[tuple[Floats, Floats]], look: Look) -> None:
    start = max(places[0] for places, _ in lines)
    end = min(places[-1] for places, _ in lines)
    grid = np.linspace(start, end, _POINTS)
    values = np.array([np.interp(grid, places, told) for places, told in lines])
    name = f"{label} ({len(lines)} seeds)" if len(lines) > 1 else label
    axes.plot(grid, np.median(values, axis=0), color=look.color, linestyle=look.line, label=name)
    if len(lines) > 1:
        axes.fill_between(
            grid, values.min(axis=0), values.max(axis=0), color=look.color, alpha=0.15, linewidth=0
        )
