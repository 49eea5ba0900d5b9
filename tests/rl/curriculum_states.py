"""Cards of made-up help states, and rewards for them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import given, settings

from mle_ideator.rl.buffer.buffer import EvolvingBuffer
from mle_ideator.rl.buffer.config import CurriculumConfig
from mle_ideator.rl.values import StateCard

UNIFORM = CurriculumConfig(top_fraction=1.0, balance=1.0, rest_draws=0, retire_after=0)


def for_any(*arguments: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Hypothesis with fewer examples, and no deadline: the machine may be busy."""
    return lambda test: settings(max_examples=40, deadline=None)(given(*arguments)(test))


def key(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def card(number: int, task: str = "a", parent: str | None = None) -> StateCard:
    return StateCard(
        id=key(number),
        task=task,
        kind="improve",
        depth=0 if parent is None else 1,
        parent=parent,
        steps=3,
        score=None,
        collected_at="2026-01-01T00:00:00Z",
    )


def filled(
    count: int, config: CurriculumConfig | None = None, tasks: Sequence[str] = ("a",), seed: int = 0
) -> EvolvingBuffer:
    buffer = EvolvingBuffer(config, seed)
    for number in range(count):
        buffer.add(card(number, tasks[number % len(tasks)]))
    return buffer
