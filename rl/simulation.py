"""A simulated learner, on which curricula are compared before anything expensive is trained.

What is assumed (docs/curriculum.md says what of it was set down before the first comparison):

- A help state has a difficulty d. The policy has a skill θ for each task and kind of state, 0 at
  first; an executed idea improves with probability 1 / (1 + exp(d − θ)).
- Some states are too easy (d = −5), some hopeless (nothing improves them), and at some an idea's
  format is invalid often, whatever the policy has learnt. Some rollouts are lost by the runtime.
- A group of G ideas raises the skill of its task and kind by `rate` × 4 × (variance of the rewards
  of its executed ideas), which is at most `rate`; the same kind of the other tasks gets the share
  `transfer` of it. Nothing is forgotten, and a group without variance teaches nothing. Drawing the
  same state again teaches as much as another one, unless `repetition` says otherwise.
- An idea that improves reaches, with some probability, a new state: harder, or hopeless.
- Skill is the mean probability to improve over all tasks and kinds on difficulties from −2 to 4.
- An execution is an idea that was run: invalid formats cost none, lost rollouts do.

It says how a curriculum spends executions under these assumptions, nothing of any real model.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mle_ideator.rl.buffer.buffer import Drawn, EvolvingBuffer
from mle_ideator.rl.buffer.config import CurriculumConfig
from mle_ideator.rl.buffer.curriculum import Floats
from mle_ideator.rl.buffer.rows import KINDS
from mle_ideator.rl.values import StateCard
from mle_ideator.types import Value

_HELD_OUT = np.linspace(-2.0, 4.0, 25)
_HOPELESS = np.inf
_IMPROVE = KINDS.index("improve")


class World(Value, frozen=True, kw_only=True):
    """What is to be learnt, and how."""

    tasks: int = 6
    states: int = 600
    """At the beginning."""
    easy: float = 0.2
    """Share of states that are too easy."""
    hopeless: float = 0.2
    """Share of states that nothing improves."""
    noisy: float = 0.1
    """Share of states at which formats are often invalid, whatever else they are."""
    hardest: float = 4.0
    """Difficulties at the beginning, of what is neither easy nor hopeless, are from −2 to this."""
    invalid: float = 0.4
    """How often there; elsewhere 0.02."""
    lost: float = 0.02
    """Share of rollouts that the runtime loses."""
    first_task: float | None = None
    """Share of the states that the first task has; without it, all have the same."""
    rate: float = 0.05
    """The most that one group raises a skill by."""
    transfer: float = 0.3
    """Share of it that the same kind of the other tasks gets."""
    repetition: float = 0.0
    """Share of a gain that is lost if the state was drawn in the step before; half of it if two
    steps before, and so on."""
    births: float = 0.1
    """Probability that an idea which improved reaches a new state."""
    harder: float = 1.0
    """A new state is harder by up to so much."""
    exhausted: float = 0.15
    """Share of new states that are hopeless."""
    groups: int = 8
    """A step, that is, a draw."""
    ideas: int = 8
    """A group (G)."""
    target: float = 0.65
    """The skill to be reached. It is 0.37 at first."""
    budget: int = 60_000
    """Executions after which the run ends without it."""


class Run(NamedTuple):
    """One seed of one curriculum."""

    executions: int
    """Until the target was reached, or the budget used up."""
    reached: bool
    signal: float
    """Share of the groups that had variance among executed ideas."""
    skills: Floats
    """After each step."""


class Line(NamedTuple):
    """One curriculum against the first one, over the same seeds."""

    strategy: str
    median: float
    """Executions to the target; runs without it count with the budget."""
    low: float
    high: float
    """95 % interval of that median (bootstrap over seeds)."""
    reached: float
    """Share of the runs."""
    signal: float
    """Median share of groups with variance."""
    ratio: float
    """Median over seeds of its executions / those of the first: over 1, the first needs fewer."""
    ratio_low: float
    ratio_high: float

    @property
    def verdict(self) -> str:
        """Of the first curriculum against this one."""
        if self.ratio_low > 1:
            return "first better"
        return "first worse" if self.ratio_high < 1 else "no difference shown"


class Learner:
    """The help states, the policy and its rollouts. The same world and seed begin the same."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.theta: Floats = np.zeros((world.tasks, len(KINDS)))
        self.executions = 0
        self._seed = seed
        self._begin = np.random.default_rng([seed, 0])
        self._random = np.random.default_rng([seed, 1])
        self._task: list[int] = []
        self._kind: list[int] = []
        self._difficulty: list[float] = []
        self._invalid: list[float] = []
        self._number: dict[str, int] = {}
        self._step = 0
        self._last: dict[int, int] = {}

    @property
    def skill(self) -> float:
        """Mean probability to improve on held-out difficulties, over tasks and kinds."""
        return float(_chance(self.theta[..., None] - _HELD_OUT).mean())

    def first_states(self) -> list[StateCard]:
        """What sessions have collected."""
        world, random = self.world, self._begin
        share = 1 / world.tasks if world.first_task is None else world.first_task
        others = (1 - share) / max(world.tasks - 1, 1)
        weights = [share] + [others] * (world.tasks - 1)
        tasks = random.choice(world.tasks, size=world.states, p=weights).tolist()
        classes = random.random(world.states)
        difficulties = np.where(
            classes < world.easy,
            -5.0,
            np.where(
                classes < world.easy + world.hopeless,
                _HOPELESS,
                random.uniform(-2.0, world.hardest, world.states),
            ),
        ).tolist()
        kinds = random.integers(len(KINDS), size=world.states).tolist()
        return [
            self._new(task, kind, difficulty, random)
            for task, kind, difficulty in zip(tasks, kinds, difficulties, strict=True)
        ]

    def _new(
        self,
        task: int,
        kind: int,
        difficulty: float,
        random: np.random.Generator,
        parent: str | None = None,
    ) -> StateCard:
        number = len(self._task)
        noisy = random.random() < self.world.noisy
        self._task.append(task)
        self._kind.append(kind)
        self._difficulty.append(difficulty)
        self._invalid.append(self.world.invalid if noisy else 0.02)
        key = hashlib.sha256(f"{self._seed}/{number}".encode()).hexdigest()
        self._number[key] = number
        return StateCard(
            id=key,
            task=f"task-{task}",
            kind=KINDS[kind],  # type: ignore[arg-type]
            parent=parent,
            steps=1,
            score=None,
            collected_at="",
        )

    def roll_out(self, drawn: Sequence[Drawn]) -> list[list[float | None]]:
        """The rewards of one group for each state. The policy does not change."""
        world, random = self.world, self._random
        numbers = [self._number[each.id] for each in drawn]
        theta = [self.theta[self._task[n], self._kind[n]] for n in numbers]
        chance = _chance(np.array(theta) - np.array([self._difficulty[n] for n in numbers]))
        shape = (len(numbers), world.ideas)
        improved = (random.random(shape) < chance[:, None]).astype(float)
        lost = random.random(shape) < world.lost
        invalid = random.random(shape) < np.array([self._invalid[n] for n in numbers])[:, None]
        self.executions += int((~invalid).sum())
        rewards = np.where(invalid, -1.0, np.where(lost, np.nan, improved))
        return [[None if r != r else r for r in group] for group in rewards.tolist()]

    def learn(self, drawn: Sequence[Drawn], groups: Sequence[Sequence[float | None]]) -> int:
        """Change the policy; returns how many groups had variance among executed ideas."""
        gains = np.zeros_like(self.theta)
        signals = 0
        self._step += 1
        for each, rewards in zip(drawn, groups, strict=True):
            number = self._number[each.id]
            executed = [r for r in rewards if r is not None and r >= 0]
            mean = sum(executed) / max(len(executed), 1)
            gain = self.world.rate * 4 * mean * (1 - mean)
            signals += gain > 0
            gain *= 1 - self.world.repetition / max(
                self._step - self._last.get(number, -math.inf), 1
            )
            self._last[number] = self._step
            task, kind = self._task[number], self._kind[number]
            gains[:, kind] += self.world.transfer * gain
            gains[task, kind] += (1 - self.world.transfer) * gain
        self.theta += gains
        return signals

    def children(
        self, drawn: Sequence[Drawn], groups: Sequence[Sequence[float | None]]
    ) -> list[StateCard]:
        """The new states that ideas reached which improved."""
        born = []
        for each, rewards in zip(drawn, groups, strict=True):
            improved = sum(r == 1 for r in rewards)
            number = self._number[each.id]
            for _ in range(self._random.binomial(improved, self.world.births)):
                harder = self._difficulty[number] + self._random.uniform(0, self.world.harder)
                hopeless = self._random.random() < self.world.exhausted
                difficulty = _HOPELESS if hopeless else harder
                task = self._task[number]
                born.append(self._new(task, _IMPROVE, difficulty, self._random, each.id))
        return born


def _chance(advantage: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-advantage))


def simulate(config: CurriculumConfig, world: World, seed: int) -> Run:
    """Train one learner until the target or the budget is reached."""
    learner, buffer = Learner(world, seed), EvolvingBuffer(config, seed)
    for card in learner.first_states():
        buffer.add(card)
    skills, signals = [learner.skill], 0
    while skills[-1] < world.target and learner.executions < world.budget:
        drawn = buffer.draw(world.groups)
        groups = learner.roll_out(drawn)
        for each, rewards in zip(drawn, groups, strict=True):
            buffer.observe(each.id, rewards)
        for card in learner.children(drawn, groups):
            buffer.add(card)
        signals += learner.learn(drawn, groups)
        skills.append(learner.skill)
    groups_done = max((len(skills) - 1) * world.groups, 1)
    reached = skills[-1] >= world.target
    executions = learner.executions if reached else world.budget
    return Run(executions, reached, signals / groups_done, np.array(skills))


def compare(
    strategies: Mapping[str, CurriculumConfig], world: World, seeds: Sequence[int]
) -> list[Line]:
    """Each curriculum on the same worlds and seeds; the first one is what others are held against.

    Medians and their intervals are over seeds, ratios are paired by seed.
    """
    runs = {
        name: [simulate(config, world, seed) for seed in seeds]
        for name, config in strategies.items()
    }
    first = np.array([run.executions for run in next(iter(runs.values()))], float)
    return [_line(name, those, first) for name, those in runs.items()]


def _line(name: str, runs: Sequence[Run], first: Floats) -> Line:
    executions = np.array([run.executions for run in runs], float)
    ratios = executions / first
    return Line(
        name,
        float(np.median(executions)),
        *_interval(executions),
        float(np.mean([run.reached for run in runs])),
        float(np.median([run.signal for run in runs])),
        float(np.median(ratios)),
        *_interval(ratios),
    )


def _interval(values: Floats, resamples: int = 4000) -> tuple[float, float]:
    """95 % interval of the median: percentiles of a bootstrap over the values, seeded."""
    picks = np.random.default_rng(0).integers(len(values), size=(resamples, len(values)))
    low, high = np.percentile(np.median(values[picks], axis=1), [2.5, 97.5])
    return float(low), float(high)
