"""What the curriculum saves with real rewards: one warmed-up model, trained by each ablation.

    OMP_NUM_THREADS=1 python tests/performance/bench_curriculum_rewards.py FOLDER --states S.db \\
        --model W [--steps 60] [--seeds 5] [--every 10] [--only adaptive uniform …] [--set K=V …]

After every few steps the policy writes two ideas to *every* help state (with a seed of their own),
and their mean reward is the policy's worth; these do not count. An execution is a different idea
from a help state; repeats are free, as in use. `ratio` is executions until uniform's final worth is
reached, over uniform's own; the median over seeds. Lines are kept in FOLDER; the same call goes on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median

import msgspec
import torch

from mle_ideator.operations import mentioned
from mle_ideator.rl.buffer.config import CurriculumConfig, ablations
from mle_ideator.rl.environments.one_step import OneStep
from mle_ideator.rl.rollouts import Rollouts
from mle_ideator.rl.training.config import TrainConfig, train_config
from mle_ideator.rl.training.episodes import new_buffer, opened_steps
from mle_ideator.rl.training.ground import Ground
from mle_ideator.rl.training.loop import Loop
from mle_ideator.rl.training.policy import Policy
from mle_ideator.rl.values import RolloutJob, RolloutResult, StateCard
from mle_ideator.types import HelpState

IDEAS = 2


@dataclass
class Counted:
    """Rollouts that know how many different ones were asked for."""

    rollouts: Rollouts
    seen: set[tuple[object, ...]] = field(default_factory=set)
    counting: bool = True

    async def run(self, job: RolloutJob) -> RolloutResult:
        if self.counting and (idea := job.proposal.idea):
            operations = sorted(one.name for one in mentioned(idea.action))
            self.seen.add((job.state, idea.reverts_to, *operations))
        return await self.rollouts.run(job)

    def help_state(self, id: str) -> HelpState:
        return self.rollouts.help_state(id)

    def card(self, id: str) -> StateCard:
        return self.rollouts.card(id)

    def cards(self) -> Sequence[StateCard]:
        return self.rollouts.cards()


@dataclass
class Curve:
    """Worth by executions, of one run."""

    curriculum: str
    seed: int
    executions: list[int]
    worth: list[float]


def run(
    config: TrainConfig, store: Path, model: str, steps: int, every: int
) -> tuple[list[int], list[float]]:
    torch.manual_seed(config.seed)
    policy = Policy(model, config.model, config.writing)
    counted: list[Counted] = []

    @asynccontextmanager
    async def opening() -> AsyncIterator[OneStep]:
        async with opened_steps(config, store, policy.room.prompt) as episodes:
            counted.append(Counted(episodes.rollouts))
            yield OneStep(
                rollouts=counted[0],
                context_tokens=episodes.context_tokens,
                form=episodes.form,
                attempts=episodes.attempts,
            )

    executions, worth = [], []
    with Ground(opening(), new_buffer(config, store), policy.fits, print) as ground:
        loop = Loop(config, policy, ground)
        for step in range(steps + 1):
            if step % every == 0:
                counted[0].counting = False
                worth.append(worth_of(policy, ground, store, config))
                counted[0].counting = True
                executions.append(len(counted[0].seen))
                print(
                    f"    step {step}: {executions[-1]} executions, worth {worth[-1]:+.3f}",
                    flush=True,
                )
            if step < steps:
                loop.step()
    return executions, worth


def worth_of(policy: Policy, ground: Ground, store: Path, config: TrainConfig) -> float:
    """Mean reward over all help states that a run begins with."""
    cards = new_buffer(config, store)
    prompts = [ground.prompt(cards.rows.id_of(row), "") for row in cards.rows]
    with torch.random.fork_rng():
        torch.manual_seed(12345)
        written = policy.write([prompt.messages for prompt in prompts], IDEAS)
    futures = [
        ground.submit(prompt.state, [each.answer for each in answers])
        for prompt, answers in zip(prompts, written, strict=True)
    ]
    rewards = [reward for future in futures for reward in future.result().rewards]
    return fmean(reward for reward in rewards if reward is not None)


def reached_at(curve: Curve, worth: float) -> float:
    """Executions until the worth is that high for good enough: at this look and at the next."""
    looks = list(zip(curve.executions, curve.worth, strict=True))
    for (executions, now), (_, then) in zip(looks, [*looks[1:], looks[-1]], strict=True):
        if now >= worth and then >= worth:
            return executions
    return float("inf")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--states", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--set", action="append", default=[])
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    base = train_config(preset="tiny", overrides=[f"states.store={asked.states}", *asked.set])
    base = msgspec.structs.replace(base, states=msgspec.structs.replace(base.states, tasks=()))
    curves: dict[str, list[Curve]] = {}
    for seed in range(asked.seeds):
        for name, curriculum in ablations(base.curriculum).items():
            if asked.only and name not in asked.only:
                continue
            curves.setdefault(name, []).append(curve_of(asked, base, name, curriculum, seed))
    show(curves)


def curve_of(
    asked: argparse.Namespace, base: TrainConfig, name: str, curriculum: CurriculumConfig, seed: int
) -> Curve:
    file = asked.folder / f"{name.replace(' ', '-')}-{seed}.json"
    if not file.exists():
        print(f"  {name}, seed {seed}", flush=True)
        config = msgspec.structs.replace(base, curriculum=curriculum, seed=seed)
        executions, worth = run(config, asked.states, asked.model, asked.steps, asked.every)
        file.write_text(json.dumps({"executions": executions, "worth": worth}))
    return Curve(name, seed, **json.loads(file.read_text()))


def show(curves: dict[str, list[Curve]]) -> None:
    finals = {curve.seed: curve.worth[-1] for curve in curves["uniform"]}
    own = {curve.seed: reached_at(curve, finals[curve.seed]) for curve in curves["uniform"]}
    print(f"{'curriculum':24}{'first':>8}{'last':>8}{'executions':>12}{'ratio':>8}  by seed")
    for name, runs in curves.items():
        ratios = [reached_at(one, finals[one.seed]) / max(1, own[one.seed]) for one in runs]
        print(
            f"{name:24}{median(c.worth[0] for c in runs):+8.3f}"
            f"{median(c.worth[-1] for c in runs):+8.3f}"
            f"{median(c.executions[-1] for c in runs):12,.0f}{median(ratios):8.2f}  "
            f"{', '.join(f'{ratio:.2f}' for ratio in ratios)}"
        )


if __name__ == "__main__":
    main()
