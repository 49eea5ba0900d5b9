"""How far a matrix is: a state that events change, and what can be told from it.

Nothing here looks at a clock, a file or a terminal.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

from mle_ideator.benchmarks.measures.values import Cell, Contender
from mle_ideator.types import Value


class Planned(Value, frozen=True, tag=True):
    """What there is to do, and what was done."""

    cells: tuple[Cell, ...]
    by_version: str = ""
    """Of the mle-ideator that began it, where that is another one."""


class Building(Value, frozen=True, tag=True):
    """A task is about to be looked at, and built if it never was."""

    task: str


class Opened(Value, frozen=True, tag=True):
    """So many cells are run at a time."""

    slots: int


class Began(Value, frozen=True, tag=True):
    """A worker has a cell."""

    cell: Cell
    at: float
    """On the clock of whoever asks for the time left."""


class Stepped(Value, frozen=True, tag=True):
    """Its session took a step."""

    cell: Cell
    step: int


class Done(Value, frozen=True, tag=True):
    """Its session has come to its end."""

    cell: Cell
    wall_s: float
    """Seconds that all attempts took."""
    valid: bool
    """Is there a solution that is valid when it runs alone?"""
    rank: float | None = None
    """HumanRank of its private score, 0 if it is not valid; `None` without a leaderboard."""
    before: bool = False
    """Was it done by an earlier call?"""


class Retried(Value, frozen=True, tag=True):
    """An attempt broke; there will be another."""

    cell: Cell
    error: str
    wait_s: float
    told: bool = False
    """Was the same said before?"""


class Failed(Value, frozen=True, tag=True):
    """It was given up."""

    cell: Cell
    error: str


Event = Planned | Building | Opened | Began | Stepped | Done | Retried | Failed


class Tally(Value, frozen=True, kw_only=True):
    """One contender so far."""

    contender: Contender
    done: int
    valid: int
    rank: float | None
    """Mean HumanRank of its runs on tasks with a leaderboard."""


@dataclass
class Progress:
    """The state. `take` is its only change."""

    cells: Sequence[Cell] = ()
    slots: int = 1
    done: dict[Cell, Done] = field(default_factory=dict)
    failed: dict[Cell, str] = field(default_factory=dict)
    running: dict[Cell, float] = field(default_factory=dict)
    """Since when."""
    steps: dict[Cell, int] = field(default_factory=dict)
    retries: int = 0

    def take(self, event: Event) -> None:
        match event:
            case Planned(cells=cells):
                self.cells = cells
            case Opened(slots=slots):
                self.slots = slots
            case Began(cell=cell, at=at):
                self.running[cell] = at
            case Stepped(cell=cell, step=step):
                self.steps[cell] = step
            case Done(cell=cell):
                self.running.pop(cell, None)
                self.done[cell] = event
            case Retried(cell=cell):
                self.running.pop(cell, None)
                self.retries += 1
            case Failed(cell=cell, error=error):
                self.running.pop(cell, None)
                self.failed[cell] = error

    @property
    def open(self) -> int:
        return len(self.cells) - len(self.done) - len(self.failed)

    def left_s(self, now: float) -> float | None:
        """Seconds until the end, about; `None` before any cell is done.

        A cell takes as long as the median of those done on its task, or of all.
        """
        if not self.done:
            return None
        by_task: defaultdict[str, list[float]] = defaultdict(list)
        for cell, end in self.done.items():
            by_task[cell.task].append(end.wall_s)
        usual = median(end.wall_s for end in self.done.values())
        work = longest = 0.0
        for cell in self.cells:
            if cell in self.done or cell in self.failed:
                continue
            takes = median(by_task[cell.task]) if by_task[cell.task] else usual
            left = max(0.0, takes - (now - self.running.get(cell, now)))
            work += left
            longest = max(longest, left)
        return max(work / self.slots, longest)

    def tallies(self) -> list[Tally]:
        """By contender, the highest mean rank first."""
        ranks: defaultdict[Contender, list[float]] = defaultdict(list)
        done: Counter[Contender] = Counter()
        valid: Counter[Contender] = Counter()
        for cell, end in self.done.items():
            done[cell.contender] += 1
            valid[cell.contender] += end.valid
            if end.rank is not None:
                ranks[cell.contender].append(end.rank)
        tallies = [
            Tally(
                contender=contender,
                done=done[contender],
                valid=valid[contender],
                rank=fmean(ranks[contender]) if ranks[contender] else None,
            )
            for contender in dict.fromkeys(cell.contender for cell in self.cells)
        ]
        return sorted(tallies, key=lambda t: -1.0 if t.rank is None else t.rank, reverse=True)
