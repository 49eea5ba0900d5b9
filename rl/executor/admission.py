"""Which work may start: what fits into the cores, memory and GPUs that are free, oldest first."""

from __future__ import annotations

from collections import deque
from typing import Generic, NamedTuple, Protocol, TypeVar

from mle_ideator.rl.executor.values import Resources

_ROUNDING = 1e-9
"""GiB: sums of fractions are not exact."""


class Capacity(NamedTuple):
    """What there is in all."""

    cores: int
    memory_gib: float
    gpus: int

    def holds(self, asked: Resources) -> bool:
        return (
            asked.cores <= self.cores
            and (asked.memory_gib or 0.0) <= self.memory_gib + _ROUNDING
            and asked.gpus <= self.gpus
        )

    def without(self, asked: Resources, number: int) -> Capacity:
        """What is left if so many take that."""
        return Capacity(
            self.cores - number * asked.cores,
            self.memory_gib - number * (asked.memory_gib or 0.0),
            self.gpus - number * asked.gpus,
        )

    def joined(self, other: Capacity) -> Capacity:
        """The larger of each."""
        return Capacity(
            max(self.cores, other.cores),
            max(self.memory_gib, other.memory_gib),
            max(self.gpus, other.gpus),
        )


class Budget:
    """What of it is taken. It may shrink below that: then nothing starts until enough is back."""

    def __init__(self, capacity: Capacity) -> None:
        self.capacity = capacity
        self._taken: dict[Resources, int] = {}

    def take(self, asked: Resources) -> bool:
        """Take it if so much is free."""
        fits = self._free().holds(asked)
        if fits:
            self._taken[asked] = self._taken.get(asked, 0) + 1
        return fits

    def give_back(self, asked: Resources) -> None:
        self._taken[asked] -= 1

    def _free(self) -> Capacity:
        # counted anew: a memory budget that is added to and taken from drifts
        free = self.capacity
        for asked, number in self._taken.items():
            free = free.without(asked, number)
        return free


class Waits(Protocol):
    """Something that waits for resources."""

    @property
    def asks(self) -> Resources: ...

    @property
    def since(self) -> float:
        """When it came, on one clock for all."""
        ...


W = TypeVar("W", bound=Waits)


class Queue(Generic[W]):
    """What waits, oldest first; smaller ones may overtake, but not for ever.

    Kept by what is asked for, so that a long queue costs nothing where its oldest does not fit.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._lines: dict[Resources, deque[W]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    def add(self, item: W) -> None:
        self._lines.setdefault(item.asks, deque()).append(item)

    def remove(self, item: W) -> None:
        line = self._lines[item.asks]
        line.remove(item)
        if not line:
            del self._lines[item.asks]

    def next(self, budget: Budget, now: float) -> W | None:
        """The oldest that fits; its resources are taken. `None` if there is none, or if an older
        one has been overtaken for `patience_s`."""
        for item in sorted((line[0] for line in self._lines.values()), key=lambda item: item.since):
            if budget.take(item.asks):
                self.remove(item)
                return item
            if now - item.since > self._patience_s:
                return None
        return None
