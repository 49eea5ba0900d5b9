"""The console of a matrix: a function of its events, live on a terminal, lines elsewhere."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mle_ideator.benchmarks.measures.values import Cell, Contender
from mle_ideator.benchmarks.runner.progress import (
    Building,
    Done,
    Event,
    Failed,
    Opened,
    Planned,
    Progress,
    Retried,
)
from mle_ideator.cli.text import duration, one_line, printable

_RUNNING = 16
"""Runs that the picture shows at most."""


def matrix_console(stream: TextIO) -> MatrixConsole:
    return MatrixConsole(Console(file=stream, highlight=False, soft_wrap=not stream.isatty()))


class MatrixConsole:
    """Takes events in as they come; draws on a terminal, else prints a line for what matters."""

    def __init__(self, console: Console) -> None:
        self.progress = Progress()
        self._console = console
        self._live: AbstractContextManager[object] = nullcontext()
        if console.is_terminal:
            self._live = Live(
                console=console, get_renderable=self._draw, refresh_per_second=2, transient=True
            )
        self._looked = False

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._live.__exit__(kind, error, traceback)

    def take(self, event: Event) -> None:
        self.progress.take(event)
        if line := self._line(event):
            self.say(line)

    def say(self, line: str) -> None:
        self._console.print(Text(line), soft_wrap=True)

    def finish(self, out: Path, *, interrupted: bool) -> None:
        progress = self.progress
        if progress.done:
            self._console.print(self._tallies())
        for cell, error in progress.failed.items():
            self.say(f"failed: {name_of(cell)}: {one_line(error, 300)}")
        counts = f"{len(progress.done)} of {len(progress.cells)} runs done"
        failed = f", {len(progress.failed)} failed" if progress.failed else ""
        how = "interrupted: " if interrupted else ""
        more = "; the same command goes on" if progress.open or progress.failed else ""
        self.say(f"{how}{counts}{failed}{more}; results in {out}")

    def _line(self, event: Event) -> str:
        progress = self.progress
        match event:
            case Planned(by_version=version) if version:
                return f"these results were begun by mle-ideator {version}: compare with care"
            case Building() if not self._looked:
                self._looked = True
                return "looking at the tasks; those that were never built are built now"
            case Opened(slots=slots):
                done = len(progress.done)
                before = f", {done} of them done before" if done else ""
                return f"{len(progress.cells)} runs{before}; {slots} at a time"
            case Done(cell=cell, before=False):
                return f"{self._count()} {name_of(cell)}: {_worth(event)}{self._left()}"
            case Retried(cell=cell, error=error, wait_s=wait_s, told=False):
                return f"{name_of(cell)}: broke, tried again in {duration(wait_s)}: {error}"
            case Failed(cell=cell, error=error):
                return f"{self._count()} {name_of(cell)}: given up: {error}"
        return ""

    def _count(self) -> str:
        progress = self.progress
        settled = len(progress.cells) - progress.open
        return f"[{settled}/{len(progress.cells)}]"

    def _left(self) -> str:
        left_s = self.progress.left_s(time.monotonic()) if self.progress.open else None
        return f", about {duration(left_s)} left" if left_s is not None else ""

    # ------------------------------------------------------------------------- the picture

    def _draw(self) -> RenderableType:
        progress = self.progress
        if not progress.cells:
            return Text("looking at agents, sandbox and tasks …", style="dim")
        settled = len(progress.cells) - progress.open
        head = Table.grid(padding=(0, 1))
        head.add_row(
            ProgressBar(total=len(progress.cells), completed=settled, width=40),
            Text(
                f"{len(progress.done)} done, {len(progress.running)} running, "
                f"{len(progress.failed)} failed of {len(progress.cells)}{self._left()}"
            ),
        )
        return Group(head, self._tallies(), self._running())

    def _tallies(self) -> Table:
        table = Table(box=None, pad_edge=False)
        table.add_column("so far")
        for name in ("done", "valid", "HumanRank"):
            table.add_column(name, justify="right")
        for tally in self.progress.tallies():
            rank = "" if tally.rank is None else f"{tally.rank:.3f}"
            table.add_row(Text(_pair(tally.contender)), str(tally.done), str(tally.valid), rank)
        return table

    def _running(self) -> Table:
        table = Table(box=None, pad_edge=False, show_header=False)
        now = time.monotonic()
        for cell, since in list(self.progress.running.items())[:_RUNNING]:
            step = self.progress.steps.get(cell)
            taken = f"step {step}" if step else "starting"
            table.add_row(Text(name_of(cell), style="cyan"), taken, duration(now - since))
        return table


def name_of(cell: Cell) -> str:
    """A cell in a line: `TASK, IMPLEMENTER + IDEATOR, seed N`."""
    return printable(f"{cell.task}, {_pair(cell.contender)}, seed {cell.seed}")


def _pair(contender: Contender) -> str:
    return printable(f"{contender.implementer} + {contender.ideator}")


def _worth(end: Done) -> str:
    if not end.valid:
        return f"no valid solution, {duration(end.wall_s)}"
    rank = "" if end.rank is None else f" with HumanRank {end.rank:.3f}"
    return f"valid{rank}, {duration(end.wall_s)}"
