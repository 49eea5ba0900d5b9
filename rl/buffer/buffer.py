"""The evolving buffer: which help states there are, what ideas earned there, and which come next.

A state is *drawable*, *resting* (it was drawn a moment ago), or *retired* (its groups have no
variance any more); which of these it is, and at which level of potential it stands, changes in
constant time, so a draw costs the same at a thousand states and at a million.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from mle_ideator.errors import UsageError
from mle_ideator.rl.buffer import curriculum as pure
from mle_ideator.rl.buffer import views
from mle_ideator.rl.buffer.cells import Cells
from mle_ideator.rl.buffer.config import CurriculumConfig
from mle_ideator.rl.buffer.lottery import lottery
from mle_ideator.rl.buffer.places import Places
from mle_ideator.rl.buffer.rows import (
    DRAWABLE,
    FREE,
    KINDS,
    MOST,
    RESTING,
    Rows,
)
from mle_ideator.rl.values import StateCard

Why = Literal["unseen", "top", "resting", "retired", "again"]
_VERSION = 1
_DEEPEST = 2**15 - 1


class Drawn(NamedTuple):
    """One help state to be trained on next."""

    row: int
    """Its place in `distribution()`; valid until the state leaves."""
    id: str
    task: str
    potential: float
    why: Why
    """`unseen`, `top`: it is among the top states by potential, without or with ideas executed. The
    others only where fewer states were drawable than were asked for: its rest was cut short, it was
    retired, or it is in this draw a second time."""


class EvolvingBuffer(Places):
    """Help states with their reward statistics, drawn by the curriculum.

    The same config, seed and calls give the same draws, also over `state_dict`. Nothing here waits,
    and nothing that a state does can keep others from being drawn. Not to be shared by threads.
    """

    def __init__(self, config: CurriculumConfig | None = None, seed: int = 0) -> None:
        self._begin(config or CurriculumConfig(), seed)

    def _begin(self, config: CurriculumConfig, seed: int) -> None:
        super().__init__(config)
        self.recent = deque[bool](maxlen=config.window)
        """Of the last groups of two executed ideas or more: had they any variance?"""
        self.tasks: list[str] = []
        self._random = np.random.default_rng(seed)
        self._task_numbers: dict[str, int] = {}
        self._sizes: list[int] = []  # states by task

    def __contains__(self, state: str) -> bool:
        return self.rows.find(state) is not None

    # ------------------------------------------------------------------------------- add

    def add(self, card: StateCard) -> int | None:
        """The row of the state; a known one is merged. `None` if it was not taken up.

        Raises `UsageError` if its id is none.
        """
        known = self.rows.find(card.id)
        if known is not None:
            self.tallies["merged"] += 1
            return known
        if card.parent is not None and not self.config.grow:
            self.tallies["refused_fixed_set"] += 1
            return None
        task = self._task_number(card.task)
        if not self._room_in(task):
            self.tallies["refused_task_limit"] += 1
            return None
        self.tallies["added"] += 1
        row = self.rows.add(card.id)
        self.rows.task[row], self.rows.kind[row] = task, KINDS.index(card.kind)
        self.rows.depth[row] = min(card.depth, _DEEPEST)
        self.rows.potential[row] = pure.prior_potential(self.config)
        self._sizes[task] += 1
        self.move(row, DRAWABLE)
        return row

    def _task_number(self, task: str) -> int:
        number = self._task_numbers.setdefault(task, len(self.tasks))
        if number == len(self.tasks):
            self.tasks.append(task)
            self._sizes.append(0)
            self.cells.grow(len(self.tasks))
        return number

    def _room_in(self, task: int) -> bool:
        """Is there room for one more state of the task? One may leave for it.

        A retired one; or the one with the least potential, unless that is the newcomer. Never one
        that rests: its ideas may be under way.
        """
        if self._sizes[task] < self.config.task_limit:
            return True
        levels = self.cells.drawable[task].nonzero()[0]
        newcomer = pure.level(pure.prior_potential(self.config), self.config)
        if self.cells.retired[task]:
            leaves = self.cells.first(task, self.config.bins)
        elif len(levels) and levels[0] <= newcomer:
            leaves = self.cells.first(task, int(levels[0]))
        else:
            return False
        self.move(leaves, FREE)
        self.rows.remove(leaves)
        self._sizes[task] -= 1
        self.tallies["left_task_limit"] += 1
        return True

    # ------------------------------------------------------------------------------ draw

    def draw(self, count: int) -> list[Drawn]:
        """So many states to be trained on next, all different if there are so many.

        With less drawable states than asked for, first those are taken that rest, then those that
        are retired, in each case the one whose time is up next; then all of them over again. Only
        an empty buffer gives none. The tallies say how often each happened.
        """
        drawn: list[Drawn] = []
        while len(drawn) < count and (more := self._top(count - len(drawn))):
            drawn += more
        while len(drawn) < count and (spare := self._spare()):
            drawn.append(spare)
        self.lay_to_rest(each.row for each in drawn)
        distinct = len(drawn)
        while drawn and len(drawn) < count:
            drawn.append(drawn[len(drawn) - distinct]._replace(why="again"))
        self.tallies["drawn"] += len(drawn)
        self.tallies["drawn_again"] += len(drawn) - distinct
        self.wake()
        return drawn

    def _top(self, count: int) -> list[Drawn]:
        """Up to so many of the candidates, all different; mostly all, none if there are none."""
        tickets = lottery(self.cells.drawable, count, self.draws, self.config)
        if not tickets.open:
            return []
        drawn = []
        for task, level, place in tickets.cells(self._random, count):
            row = self.cells.pick(task, level, place)
            if row is not None:
                drawn.append(self._taken(row, "top" if self.rows.weight[row] else "unseen"))
        return drawn

    def _spare(self) -> Drawn | None:
        row = self.next_spare()
        if row is None:
            return None
        if self.rows.status[row] == RESTING:
            return self._taken(row, "resting")
        self.on_trial(row)
        return self._taken(row, "retired")

    def _taken(self, row: int, why: Why) -> Drawn:
        """Out of reach for the rest of this draw."""
        self.move(row, RESTING)
        self.rows.due[row] = 0  # so that what queues hold of an earlier rest does not fit it
        self.rows.draws[row] += 1
        self.tallies[f"drawn_{why}"] += 1
        task = self.tasks[self.rows.task[row]]
        return Drawn(row, self.rows.id_of(row), task, self.rows.potential[row], why)

    # --------------------------------------------------------------------------- observe

    def observe(self, state: str, rewards: Sequence[float | None], invalid: int = 0) -> bool:
        """Take up what a group of ideas earned. False if the state has left, or never was there.

        `None` (or NaN) is masked; −1, an idea without a readable format, is counted apart, as are
        `invalid` further ones that are not among the rewards. Raises `UsageError` for what is no
        reward.
        """
        group = pure.read_group(rewards, invalid, self.config.executed_only)
        row = self.rows.find(state)
        if row is None:
            self.tallies["observed_unknown"] += 1
            return False
        self.tallies["observed"] += 1
        rows, ideas = self.rows, len(rewards) + invalid
        rows.groups[row] += 1
        rows.invalid[row] += group.invalid
        rows.masked[row] += group.masked
        rows.executed[row] += ideas - group.masked - group.invalid
        self.tallies["invalid"] += group.invalid
        self.tallies["masked"] += group.masked
        self.tallies["ideas"] += ideas
        if group.rewards:
            self._learn(row, group.rewards)
        else:
            rows.silent[row] = min(rows.silent[row] + 1, MOST)
        self.place(row)
        return True

    def _learn(self, row: int, rewards: Sequence[float]) -> None:
        rows = self.rows
        now = pure.merged(rows.statistics(row), rewards, self.config.memory)
        rows.weight[row], rows.mean[row], rows.squares[row] = now
        rows.potential[row] = pure.potential(now.mean, now.std, self.config)
        rows.flat[row] = max(min(pure.flat_run(rows.flat[row], rewards), MOST), -MOST)
        if not rows.flat[row]:
            rows.returns[row] = 0
        rows.silent[row] = 0
        if len(rewards) > 1:
            self.recent.append(min(rewards) != max(rewards))

    # ----------------------------------------------------------------------------- views

    def metrics(self) -> views.BufferMetrics:
        """What one wants to see at every step. A look at every state."""
        return views.metrics(self)

    def distribution(self) -> pure.Floats:
        """Of each row, the probability that its state is the first of the next draw.

        They sum to 1, but for an empty buffer. Where nothing is drawable, one state is certain.
        """
        return views.distribution(self)

    def explain(self, state: str) -> views.Explanation:
        """Why it would be drawn next, or not. Raises `UsageError` if it is not in the buffer."""
        return views.explain(self, state)

    def likely(self, count: int = 20) -> list[views.Explanation]:
        """The states that are most likely to be drawn next: rows of a table."""
        return views.likely(self, count)

    # ----------------------------------------------------------------------------- state

    def state_dict(self) -> dict[str, Any]:
        """All of it, as arrays, one of which holds a JSON text; a copy."""
        meta = {
            "version": _VERSION,
            "config": msgspec.to_builtins(self.config),
            "draws": self.draws,
            "tallies": dict(self.tallies),
            "tasks": self.tasks,
            "random": self._random.bit_generator.state,
        }
        return {
            "meta": np.array(json.dumps(meta)),
            "recent": np.array(self.recent, bool),
            "resting": np.array(self._resting, np.int64).reshape(-1, 2),
            "retired": np.array(self._retired, np.int64).reshape(-1, 2),
            **self.rows.dump(),
            **self.cells.dump(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Become what the other was; its config too. Raises `UsageError` for another version's."""
        meta = json.loads(str(state["meta"]))
        if meta["version"] != _VERSION:
            raise UsageError(
                f"the buffer was saved in form {meta['version']}, this version reads form "
                f"{_VERSION}: open it with the version that wrote it."
            )
        self._begin(msgspec.convert(meta["config"], CurriculumConfig), 0)
        self.draws, self.tallies = meta["draws"], Counter(meta["tallies"])
        self.recent.extend(state["recent"].tolist())
        self._random.bit_generator.state = meta["random"]
        for task in meta["tasks"]:
            self._task_number(task)
        self.rows = Rows.restored(state)
        self.cells = Cells(self.rows, self.config.bins)
        self.cells.grow(len(self.tasks))
        self.cells.restore(state)
        self._resting = deque((due, row) for due, row in state["resting"].tolist())
        self._retired = [(due, row) for due, row in state["retired"].tolist()]
        status, task = self.rows.column("status"), self.rows.column("task")
        self._sizes = np.bincount(task[status != FREE], minlength=len(self.tasks)).tolist()
        self.at = Counter(dict(enumerate(np.bincount(status, minlength=4).tolist())))

    def reconfigure(self, config: CurriculumConfig) -> None:
        """Go on with other constants: what was observed stays, potentials are taken anew."""
        self.config = config
        self.recent = deque(self.recent, maxlen=config.window)
        for row in self.rows:
            now = self.rows.statistics(row)
            seen = pure.potential(now.mean, now.std, config)
            self.rows.potential[row] = seen if now.weight else pure.prior_potential(config)
        self.refill(len(self.tasks))
