"""How long trainers wait for rewards, how many steps they make in a second, and their memory.

    python -m tests.performance.bench_trainers [--steps N] [--seconds S] [--slots N] [--only NAME …]

Each trainer runs in a process of its own, on the same model from scratch (4 layers, width 128), the
same prompts, and rollouts that sleep. Once they take `--seconds` each, on `--slots` slots (left out
with `--seconds 0`); once no time.

    plain   TRL's own trainer and a plain reward function, which executes one answer after the other
    pooled  the same, with a reward function that uses all slots
    trl     `GroundTrainer`
    loop    our own small loop, which writes the next answers meanwhile

The first step is not counted. Reported are seconds of waiting in a step; seconds of a step, by the
clock and of the processor (which a busy machine does not change much), and the most memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec
import torch

from mle_ideator.messages import Message
from mle_ideator.rl.buffer.buffer import EvolvingBuffer
from mle_ideator.rl.training.config import TrainConfig
from mle_ideator.rl.training.ground import Ground
from mle_ideator.rl.training.logs import LogConfig
from mle_ideator.rl.training.tiny import make_tiny
from mle_ideator.rl.values import RolloutJob, RolloutResult, result_of
from mle_ideator.types import Proposal
from tests.rl.curriculum_states import card
from tests.rl.made_rollouts import MadeRollouts

CONTEXT, STATES, IDEAS, ANSWER = 512, 4, 4, 64
WORDS = "rmse lower better rows 900 columns 12 best 0.31 forest tune pca worse interactions better "


def settings(seed: int, steps: int) -> TrainConfig:
    values = {
        "steps": steps,
        "seed": seed,
        "model": {"context_tokens": CONTEXT},
        "writing": {"ideas_per_state": IDEAS, "answer_tokens": ANSWER},
        "objective": {"states_per_step": STATES},
        "optimiser": {"lr": 1e-4},
        "checkpoints": {"every": steps + 1},
    }
    return msgspec.convert(values, TrainConfig)


@dataclass
class Sleeping:
    """Has what a ground uses of `OneStep`."""

    seconds: float
    slots: int
    seed: int = 0
    rollouts: MadeRollouts = field(
        default_factory=lambda: MadeRollouts([card(i) for i in range(8)])
    )

    def prompt(self, state: str, share: float = 1.0) -> tuple[Message, ...]:
        return (Message("user", f"{state[:4]} {WORDS * 12}"),)

    async def judged(self, state: str, answer: str, *, cut: bool = False) -> RolloutResult:
        if not hasattr(self, "_free"):
            self._free = asyncio.Semaphore(self.slots)
        async with self._free:
            await asyncio.sleep(self.seconds)
        job = RolloutJob(state=state, proposal=Proposal(None))
        return result_of(job, "improved" if len(answer) % 2 else "not_improved")

    def ground(self, config: TrainConfig) -> Ground:
        buffer = EvolvingBuffer(config.curriculum, config.seed)
        for one in self.rollouts.cards():
            buffer.add(one)
        return Ground(nullcontext(self), buffer)  # type: ignore[arg-type]


class Clocks:
    """Of the wall, and of this process."""

    def __init__(self) -> None:
        self._wall, self._process = time.monotonic(), time.process_time()

    def since(self) -> dict[str, float]:
        now, spent = time.monotonic(), time.process_time()
        return {"step_s": now - self._wall, "cpu_s": spent - self._process}


Contender = Callable[[Path, int, Sleeping], list[dict[str, float]]]


def loop(folder: Path, steps: int, work: Sleeping) -> list[dict[str, float]]:
    from mle_ideator.rl.training.loop import Loop
    from mle_ideator.rl.training.policy import Policy

    config = settings(0, steps)
    policy = Policy(str(folder / "model"), config.model, config.writing)
    found = []
    with work.ground(config) as ground:
        trainer = Loop(config, policy, ground)
        for _ in range(steps):
            began = Clocks()
            waited = trainer.step()["wait_s"]
            found.append({"wait_s": waited, **began.since()})
    return found


def trl(folder: Path, steps: int, work: Sleeping) -> list[dict[str, float]]:
    from mle_ideator.rl.training.listening import Listener
    from tests.rl.training.trl_driver import trained

    found: list[dict[str, float]] = []

    class Noting(Listener):
        ended = Clocks()

        def step(self, step: int, steps: int, metrics: Any) -> None:
            found.append({"wait_s": metrics["wait_s"], **self.ended.since()})
            self.ended = Clocks()

    config = msgspec.structs.replace(settings(0, steps), logs=LogConfig(to=()))
    trained(work, config, folder / "run", folder / "model", Noting())
    return found


def plain(folder: Path, steps: int, work: Sleeping) -> list[dict[str, float]]:
    return _of_trl(folder, steps, work, at_once=1)


def pooled(folder: Path, steps: int, work: Sleeping) -> list[dict[str, float]]:
    return _of_trl(folder, steps, work, at_once=work.slots)


def _of_trl(folder: Path, steps: int, work: Sleeping, at_once: int) -> list[dict[str, float]]:
    """TRL as it is, with the settings that the adapter would give it."""
    from concurrent.futures import ThreadPoolExecutor

    from datasets import Dataset
    from transformers import AutoTokenizer, TrainerCallback
    from trl import GRPOTrainer

    from mle_ideator.rl.training.trl.settings import grpo_config

    found: list[dict[str, float]] = []
    pool = ThreadPoolExecutor(at_once)

    def reward(completions: list[str], **_: Any) -> list[float]:
        began = time.monotonic()
        list(pool.map(lambda _: time.sleep(work.seconds), completions))
        found.append({"wait_s": time.monotonic() - began})
        return [float(len(text) % 2) for text in completions]

    class Noting(TrainerCallback):  # type: ignore[misc]
        ended = Clocks()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            found[-1] |= self.ended.since()
            self.ended = Clocks()

    tokenizer = AutoTokenizer.from_pretrained(folder / "model")
    rows = [
        tokenizer.apply_chat_template(
            [{"role": "user", "content": work.prompt(state.id)[0].text}],
            tokenize=False,
            add_generation_prompt=True,
        )
        for state in work.rollouts.cards()
    ]
    trainer = GRPOTrainer(
        model=str(folder / "model"),
        reward_funcs=[reward],
        args=grpo_config(settings(0, steps), ANSWER, folder / "trl"),
        train_dataset=Dataset.from_dict({"prompt": rows}),
        processing_class=tokenizer,
        callbacks=[Noting()],
    )
    trainer.train()
    return found


CONTENDERS: dict[str, Contender] = {"plain": plain, "pooled": pooled, "trl": trl, "loop": loop}


def one(name: str, steps: int, seconds: float, slots: int) -> dict[str, float]:
    """In this process."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make_tiny(folder / "model", [WORDS], vocab=512, context=CONTEXT)
        found = CONTENDERS[name](folder, steps, Sleeping(seconds, slots))[1:]
    means = {name: fmean(each[name] for each in found) for name in ("wait_s", "step_s", "cpu_s")}
    return means | {"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def elsewhere(name: str, steps: int, seconds: float, slots: int) -> dict[str, float]:
    """In a process of its own."""
    command = [sys.executable, "-m", "tests.performance.bench_trainers", "--one", name]
    command += ["--steps", str(steps), "--seconds", str(seconds), "--slots", str(slots)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--only", nargs="*", default=list(CONTENDERS), choices=list(CONTENDERS))
    parser.add_argument("--one", choices=list(CONTENDERS), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(one(asked.one, asked.steps, asked.seconds, asked.slots)))
        return
    print(f"{STATES} states x {IDEAS} answers a step; {asked.seconds:g} s on {asked.slots} slots")
    print(f"{'':8}{'waits s':>9}{'step s':>9}{'instant: step s':>17}{'cpu s':>8}{'MB':>6}")
    for name in asked.only:
        fast = elsewhere(name, 2 * asked.steps, 0.0, asked.slots)
        slow = elsewhere(name, asked.steps, asked.seconds, asked.slots) if asked.seconds else fast
        times = f"{slow['wait_s']:9.2f}{slow['step_s']:9.2f}{fast['step_s']:17.2f}"
        print(f"{name:8}{times}{fast['cpu_s']:8.2f}{fast['peak_mb']:6.0f}", flush=True)


if __name__ == "__main__":
    main()
