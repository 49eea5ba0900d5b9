"""A run of TRL's trainer on the ground of letters, in a process of its own (or several).

    python -m tests.rl.training.trl_driver RUN MODEL STEPS [KEY=VALUE …]

Prints `step N` when one is done. Every answer reaches a new help state.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from threading import Event
from typing import Any

import msgspec
import torch
import yaml

from mle_ideator.rl.buffer.buffer import EvolvingBuffer
from mle_ideator.rl.training.config import TrainConfig
from mle_ideator.rl.training.listening import Listener
from mle_ideator.rl.training.trl.processes import process
from mle_ideator.rl.training.trl.running import train_on
from mle_ideator.rl.training.trl.trainer import GroundTrainer
from mle_ideator.rl.values import RolloutResult
from tests.rl.curriculum_states import card
from tests.rl.training.letters import Letters, config


class Saying(Listener):
    """Says when a step is done, and what is told."""

    def step(self, step: int, steps: int, metrics: Mapping[str, float]) -> None:
        print("step", step, file=sys.__stdout__, flush=True)

    def said(self, text: str) -> None:
        print(text, file=sys.__stdout__, flush=True)


def trained(
    letters: Any,
    settings: TrainConfig,
    run: Path,
    model: Path,
    listener: Listener | None = None,
    stop: Event | None = None,
) -> str:
    return train_on(
        lambda: buffer_of(letters, settings),
        lambda tokens: nullcontext(letters),
        settings,
        run,
        str(model),
        listener or Listener(),
        stop or Event(),
    )


def buffer_of(letters: Any, settings: TrainConfig) -> EvolvingBuffer:
    buffer = EvolvingBuffer(settings.curriculum, settings.seed)
    for one in letters.rollouts.cards():
        buffer.add(one)
    return buffer


class Reaching(Letters):
    """Every answer reaches a new help state."""

    async def judged(self, state: str, answer: str, *, cut: bool = False) -> RolloutResult:
        result = await super().judged(state, answer, cut=cut)
        reached = card(zlib.crc32(f"{state} {answer}".encode()), parent=state)
        self.rollouts._cards[reached.id] = reached
        return msgspec.structs.replace(result, child=reached.id)


def note_rows(run: Path) -> None:
    """Let each process write down what it wrote: `rank-N.jsonl`, a line a batch."""
    calculate = GroundTrainer._calculate_rewards
    run.mkdir(parents=True, exist_ok=True)
    file = (run / f"rank-{process()}.jsonl").open("a")

    def noting(self: Any, inputs: Any, prompts: Any, completions: Any, tokens: Any) -> Any:
        rewards = calculate(self, inputs, prompts, completions, tokens)
        rows = {
            "states": [row["state"] for row in inputs],
            "prompts": [prompt[0]["content"] for prompt in prompts],
            "texts": [self._reader.answer(each).text for each in tokens],
            "rewards": rewards[:, 0].tolist(),
        }
        file.write(json.dumps(rows) + "\n")
        file.flush()
        return rewards

    GroundTrainer._calculate_rewards = noting


def main() -> None:
    torch.set_num_threads(1)
    run, model, steps, *changes = sys.argv[1:]
    changed = {key: yaml.safe_load(value) for key, value in (c.split("=", 1) for c in changes)}
    settings = config(steps=int(steps), logs={"to": []}, **changed)
    note_rows(Path(run))
    trained(Reaching(), settings, Path(run), Path(model), Saying())


if __name__ == "__main__":
    main()
