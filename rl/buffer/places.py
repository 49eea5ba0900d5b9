"""Where each help state stands: drawable, resting, or retired, and who comes back when.

What queues hold of a state may be out of date, because it moved on meanwhile; then the time that
its row says it is due is another one, and the entry is passed over.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Iterable

from mle_ideator.rl.buffer import curriculum as pure
from mle_ideator.rl.buffer.cells import Cells
from mle_ideator.rl.buffer.config import CurriculumConfig
from mle_ideator.rl.buffer.rows import DRAWABLE, MOST, RESTING, RETIRED, Rows


class Places:
    """The states' rows, the cells of those that are drawable or retired, the queues of the rest."""

    def __init__(self, config: CurriculumConfig) -> None:
        self.config = config
        self.draws = 0
        """How often was drawn so far: the clock of the schedule, of rest and of retirement."""
        self.tallies = Counter[str]()
        """How often each thing happened, by name."""
        self.rows = Rows()
        self.cells = Cells(self.rows, config.bins)
        self.at = Counter[int]()
        """States by status."""
        self._resting = deque[tuple[int, int]]()  # (due, row), the first to rest first
        self._retired: list[tuple[int, int]] = []  # a heap of (due, row)

    def __len__(self) -> int:
        return len(self.rows)

    def move(self, row: int, status: int) -> None:
        """Change a state's status, and put it into the cell where it then belongs."""
        before = self.rows.status[row]
        if before in (DRAWABLE, RETIRED):
            self.cells.take(row)
        self.rows.status[row] = status
        if status == DRAWABLE:
            self.cells.put(row, pure.level(self.rows.potential[row], self.config))
        elif status == RETIRED:
            self.cells.put(row, self.config.bins)
        self.at[before] -= 1
        self.at[status] += 1

    def place(self, row: int) -> None:
        """Put a state where it belongs after what was just observed."""
        run = max(abs(self.rows.flat[row]), self.rows.silent[row])
        status = self.rows.status[row]
        if self.config.retire_after and run >= self.config.retire_after:
            if status != RETIRED:
                self.retire(row)
        elif status == DRAWABLE:
            self.move(row, DRAWABLE)
        elif status == RETIRED:
            self.on_trial(row)

    def retire(self, row: int) -> None:
        """Until it is due; the longer, the more often it came back without any signal."""
        due = self.draws + pure.away(self.rows.returns[row], self.config)
        self.rows.due[row] = due
        heapq.heappush(self._retired, (due, row))
        self.move(row, RETIRED)
        self.tallies["retirements"] += 1

    def refill(self, tasks: int) -> None:
        """Begin with new cells, after levels or potentials have changed."""
        self.cells = Cells(self.rows, self.config.bins)
        self.cells.grow(tasks)
        for row in self.rows:
            if self.rows.status[row] == DRAWABLE:
                self.cells.put(row, pure.level(self.rows.potential[row], self.config))
            elif self.rows.status[row] == RETIRED:
                self.cells.put(row, self.config.bins)

    def lay_to_rest(self, rows: Iterable[int]) -> None:
        """From the next draw on."""
        self.draws += 1
        due = self.draws + self.config.rest_draws
        for row in rows:
            self.rows.due[row] = due
            self._resting.append((due, row))

    def wake(self) -> None:
        """Bring back those whose rest is over or one too many, and those retired long enough."""
        limit = pure.resting_limit(len(self) - self.at[RETIRED], self.config)
        while self._resting:
            due, row = self._resting[0]
            resting = self._is(row, RESTING, due)
            if resting and due > self.draws and self.at[RESTING] <= limit:
                break
            self._resting.popleft()
            if resting:
                self.move(row, DRAWABLE)
        while self._retired and self._retired[0][0] <= self.draws:
            due, row = heapq.heappop(self._retired)
            if self._is(row, RETIRED, due):
                self.on_trial(row)

    def _is(self, row: int, status: int, due: int) -> bool:
        """Does an entry of a queue still hold? It does not if the state moved on meanwhile."""
        return self.rows.status[row] == status and self.rows.due[row] == due

    def on_trial(self, row: int) -> None:
        """Bring a retired state back; one more group without variance, and it retires again."""
        rows, left = self.rows, max(self.config.retire_after - 1, 0)
        rows.flat[row] = max(min(rows.flat[row], left), -left)
        rows.silent[row] = min(rows.silent[row], left)
        rows.returns[row] = min(rows.returns[row] + 1, MOST)
        self.tallies["returned"] += 1
        self.move(row, DRAWABLE)

    def return_retired(self) -> int:
        """Bring all retired states back, as after a change of the policy. How many there were."""
        waiting = [row for due, row in sorted(self._retired) if self._is(row, RETIRED, due)]
        self._retired.clear()
        for row in waiting:
            self.on_trial(row)
        return len(waiting)

    def next_spare(self) -> int | None:
        """The row that is taken where none is drawable: the next of those that rest to come back,
        else the next of those that are retired."""
        while self._resting:
            due, row = self._resting[0]
            if self._is(row, RESTING, due):
                return row
            self._resting.popleft()
        while self._retired:
            due, row = self._retired[0]
            if self._is(row, RETIRED, due):
                return row
            heapq.heappop(self._retired)
        return None
