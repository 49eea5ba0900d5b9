"""The plot of a buffer: where its states stand, what is drawn next, and from which tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mle_ideator.benchmarks.reports.drawing.theme import LIGHT, check_matplotlib, drawing
from mle_ideator.rl.buffer import curriculum as pure
from mle_ideator.rl.buffer.buffer import EvolvingBuffer
from mle_ideator.rl.buffer.rows import DRAWABLE, RESTING, RETIRED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_TASKS = 20
_BARS = 40


def draw_buffer(buffer: EvolvingBuffer, path: Path) -> None:
    """Write the plot into a file, whose suffix tells the format (`.svg`, `.png`, `.pdf`).

    Raises `UsageError` without matplotlib, naming the extra that brings it.
    """
    check_matplotlib()
    with drawing():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9.5, 5.4), layout="constrained")
        panels: Any = figure.subplot_mosaic([["states", "tasks"], ["draw", "tasks"]])
        panels["draw"].sharex(panels["states"])
        _states(panels["states"], buffer)
        _next_draw(panels["draw"], buffer)
        _tasks(panels["tasks"], buffer)
        figure.savefig(path)


def _edges(buffer: EvolvingBuffer) -> list[float]:
    edges: list[float] = np.linspace(0.0, buffer.config.highest_potential, _BARS + 1).tolist()
    return edges


def _states(axes: Axes, buffer: EvolvingBuffer) -> None:
    column = buffer.rows.column
    status, potential, unseen = column("status"), column("potential"), column("weight") == 0
    groups = {
        "unseen": (status == DRAWABLE) & unseen,
        "drawable": (status == DRAWABLE) & ~unseen,
        "resting": status == RESTING,
        "retired": status == RETIRED,
    }
    axes.hist(
        [potential[mask] for mask in groups.values()],
        bins=_edges(buffer),
        stacked=True,
        color=LIGHT[: len(groups)],
        label=[f"{name}: {mask.sum():,}" for name, mask in groups.items()],
    )
    axes.set(title="Help states by learnability potential", ylabel="states")
    axes.legend(frameon=False, loc="upper left")


def _next_draw(axes: Axes, buffer: EvolvingBuffer) -> None:
    chances, potential = buffer.distribution(), buffer.rows.column("potential")
    axes.hist(potential, bins=_edges(buffer), weights=chances, color=LIGHT[0])
    share = pure.top_fraction(buffer.draws, buffer.config)
    why = f"draw {buffer.draws + 1}: from the top {share:.0%} of the drawable states"
    axes.set(title=f"Next draw ({why})", ylabel="probability", xlabel="potential P(x)")


def _tasks(axes: Axes, buffer: EvolvingBuffer) -> None:
    by_task = buffer.metrics().by_task
    shown = sorted(by_task, key=lambda name: -by_task[name].share_of_draws)[:_MOST_TASKS]
    places, total = np.arange(len(shown)), max(len(buffer), 1)
    of_states = [by_task[name].states / total for name in shown]
    axes.barh(places - 0.2, of_states, 0.4, color=LIGHT[6], label="share of the states")
    of_draws = [by_task[name].share_of_draws for name in shown]
    axes.barh(places + 0.2, of_draws, 0.4, color=LIGHT[0], label="share of the next draw")
    axes.set_yticks(places, shown)
    axes.invert_yaxis()
    more = f" (first {_MOST_TASKS} of {len(by_task)})" if len(by_task) > _MOST_TASKS else ""
    axes.set(title=f"Balance between tasks{more}")
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.05), ncols=2)
