"""A batch of groups, from its prompts to what its answers earned."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Any

import msgspec

from mle_ideator.rl.training.ground import Ground
from mle_ideator.rl.training.policy import Policy, Written
from mle_ideator.rl.training.values import Group

_LOOK_S = 0.5


@dataclass(frozen=True)
class Batch:
    """Groups under execution: of each, the help state, and what the policy wrote."""

    states: list[str]
    written: list[list[Written]]
    futures: list[Future[Group]]

    def kept(self) -> Any:
        """What is needed to go on with it elsewhere, in plain values."""
        return msgspec.to_builtins(list(zip(self.states, self.written, strict=True)))


def write_batch(policy: Policy, ground: Ground, count: int, ideas: int) -> Batch:
    """Draw help states, write answers to them, and have these executed."""
    prompts = ground.draw(count)
    written = policy.write([prompt.messages for prompt in prompts], ideas)
    return submitted(ground, [(p.state, w) for p, w in zip(prompts, written, strict=True)])


def restored(ground: Ground, kept: Any) -> Batch:
    """Have answers that were kept executed again, or remembered."""
    return submitted(ground, msgspec.convert(kept, list[tuple[str, list[Written]]]))


def submitted(ground: Ground, kept: Sequence[tuple[str, list[Written]]]) -> Batch:
    futures = [ground.submit(state, [each.answer for each in answers]) for state, answers in kept]
    return Batch([state for state, _ in kept], [answers for _, answers in kept], futures)


def groups_of(batch: Batch, waits_for: Callable[[int], None]) -> tuple[list[Group], float]:
    """What came of it, and the seconds waited; `waits_for` hears how many groups are still out."""
    began, out = time.monotonic(), set(batch.futures)
    while out := {future for future in out if not future.done()}:
        waits_for(len(out))
        wait(out, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
    return [future.result() for future in batch.futures], time.monotonic() - began
