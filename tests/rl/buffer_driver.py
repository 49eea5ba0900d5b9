"""Trains on a kept buffer without end, saying after each call that it was done: to be killed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from mle_ideator.rl.buffer.buffer import EvolvingBuffer
from mle_ideator.rl.buffer.config import CurriculumConfig
from mle_ideator.rl.buffer.disk import KeptBuffer
from tests.rl.curriculum_states import card

CONFIG = CurriculumConfig(anneal_draws=20, retire_after=1, return_after=5, task_limit=60)


def reward(state: str, time: int) -> list[float | None]:
    """What a state's ideas earn at a time: always the same."""
    noise = int(state[:8], 16) + 7919 * time
    return [(1.0, 0.0, 0.0, None)[(noise >> shift) % 4] for shift in (0, 3, 6, 9)]


def calls(buffer: EvolvingBuffer) -> Iterator[None]:
    """One call after the other, the same whenever the buffer is the same."""
    for number in range(100):
        buffer.add(card(number, "ab"[number % 2]))
        yield
    born = 100
    while True:
        drawn = buffer.draw(6)
        yield
        for each in drawn:
            buffer.observe(each.id, reward(each.id, buffer.draws))
            yield
        buffer.add(card(born, "a", parent=drawn[0].id))
        born += 1
        yield


def main(folder: Path) -> None:
    with KeptBuffer(folder, CONFIG, seed=5) as buffer:
        for number, _ in enumerate(calls(buffer), start=1):
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()
            if number % 97 == 0:
                buffer.save()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
