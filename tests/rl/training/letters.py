"""A ground on which a model from scratch can learn at once: answers are good that hold an `e`."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from mle_ideator.messages import Message
from mle_ideator.rl.buffer.buffer import EvolvingBuffer
from mle_ideator.rl.training.config import TrainConfig
from mle_ideator.rl.training.ground import Ground
from mle_ideator.rl.training.tiny import make_tiny
from mle_ideator.rl.values import RolloutJob, RolloutResult, result_of
from mle_ideator.types import Proposal
from tests.rl.curriculum_states import card
from tests.rl.made_rollouts import MadeRollouts

WANTED = "e"


@dataclass
class Letters:
    """Has what a ground uses of `OneStep`. An answer earns +1 with an `e`, −1 if it is cut."""

    states: int = 6
    latency_s: float = 0.0
    seed: int = 0
    rollouts: MadeRollouts = field(init=False)
    judged_texts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rollouts = MadeRollouts([card(number) for number in range(self.states)])

    def prompt(self, state: str, share: float = 1.0) -> tuple[Message, ...]:
        return (Message("user", f"State {state[:4]}"),)

    async def judged(self, state: str, answer: str, *, cut: bool = False) -> RolloutResult:
        self.judged_texts.append(answer)
        await asyncio.sleep(self.latency_s)
        outcome = "invalid_format" if cut else "improved" if WANTED in answer else "not_improved"
        return result_of(RolloutJob(state=state, proposal=Proposal(None)), outcome)

    def ground(self, config: TrainConfig) -> Ground:
        buffer = EvolvingBuffer(config.curriculum, config.seed)
        for one in self.rollouts.cards():
            buffer.add(one)
        return Ground(nullcontext(self), buffer)


def config(**changes: object) -> TrainConfig:
    """Small and quick."""
    values = {
        "model": {"context_tokens": 48},
        "objective": {"states_per_step": 4},
        "optimiser": {"lr": 1e-2},
        "seed": 3,
    }
    for key, value in changes.items():
        section, _, name = key.partition("__")
        if name:
            values.setdefault(section, {})[name] = value
        else:
            values[section] = value
    return msgspec.convert(values, TrainConfig)


def tiny(folder: Path) -> Path:
    return make_tiny(folder, ["State abcd"], vocab=300, hidden=32, layers=1, heads=2, context=48)
