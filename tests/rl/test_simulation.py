"""The simulated learner does what it says, and the curriculum saves executions on it."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from mle_ideator.rl.buffer.buffer import EvolvingBuffer
from mle_ideator.rl.buffer.config import CurriculumConfig, ablations
from mle_ideator.rl.simulation import Learner, World, compare, simulate

SHORT = World(states=200, target=0.5, budget=8_000)


def drawn_from(learner: Learner, count: int):
    buffer = EvolvingBuffer(CurriculumConfig(balance=1.0))
    for card in learner.first_states():
        buffer.add(card)
    return buffer.draw(count)


def test_the_same_seed_gives_the_same_run():
    first, second = (simulate(CurriculumConfig(), SHORT, seed=1) for _ in range(2))
    assert first.executions == second.executions
    assert np.array_equal(first.skills, second.skills)
    assert simulate(CurriculumConfig(), SHORT, seed=2).executions != first.executions


def test_curricula_begin_from_the_same_states():
    one, other = Learner(SHORT, 3), Learner(SHORT, 3)
    one.roll_out(drawn_from(one, 5))
    assert [card.id for card in Learner(SHORT, 3).first_states()] == [
        card.id for card in other.first_states()
    ]


def test_what_is_hopeless_never_improves_and_what_is_easy_nearly_always_does():
    for world, low, high in (
        (World(hopeless=1.0, easy=0.0), 0.0, 0.0),
        (World(hopeless=0.0, easy=1.0), 0.98, 1.0),
        (World(hopeless=0.0, easy=0.0), 0.3, 0.45),
    ):
        learner = Learner(msgspec.structs.replace(world, noisy=0.0, lost=0.0, invalid=0.0), 0)
        rewards = [r for g in learner.roll_out(drawn_from(learner, 400)) for r in g]
        executed = [r for r in rewards if r != -1.0]
        assert low <= np.mean(executed) <= high


def test_lost_and_invalid_ideas_come_as_they_are_said():
    learner = Learner(World(noisy=1.0, invalid=0.4, lost=0.25), 0)
    groups = learner.roll_out(drawn_from(learner, 400))
    rewards = [r for group in groups for r in group]
    assert rewards.count(-1.0) / len(rewards) == pytest.approx(0.4, abs=0.03)
    assert rewards.count(None) / len(rewards) == pytest.approx(0.6 * 0.25, abs=0.03)
    assert learner.executions == len(rewards) - rewards.count(-1.0)


def test_only_variance_teaches_and_by_how_much():
    learner = Learner(World(rate=0.1, transfer=0.25, tasks=3), 0)
    (drawn,) = drawn_from(learner, 1)
    before = learner.skill
    for nothing in ([1.0] * 8, [0.0] * 8, [None] * 8, [-1.0, 0.0] * 4):
        assert learner.learn([drawn], [nothing]) == 0
    assert learner.skill == before
    assert learner.learn([drawn], [[1.0, 0.0] * 4]) == 1
    assert sorted(learner.theta[learner.theta > 0]) == pytest.approx([0.025, 0.025, 0.1])
    assert learner.skill > before


def test_only_what_improved_has_children():
    learner = Learner(World(births=1.0, exhausted=0.0), 0)
    (drawn,) = drawn_from(learner, 1)
    assert learner.children([drawn], [[0.0, -1.0, None]]) == []
    born = learner.children([drawn], [[1.0, 1.0, 0.0]])
    assert [(card.parent, card.kind, card.task) for card in born] == [
        (drawn.id, "improve", drawn.task)
    ] * 2


def test_a_run_without_the_target_counts_with_the_budget():
    world = World(hopeless=1.0, easy=0.0, states=50, budget=500)
    run = simulate(CurriculumConfig(), world, 0)
    assert (run.executions, run.reached, run.signal) == (500, False, 0.0)


def test_the_adaptive_curriculum_needs_fewer_executions_than_uniform():
    named = ablations()
    chosen = {name: named[name] for name in ("adaptive", "uniform")}
    adaptive, uniform = compare(chosen, World(hopeless=0.6, target=0.55), range(4))
    assert adaptive.ratio == adaptive.ratio_low == adaptive.ratio_high == 1
    assert adaptive.reached == uniform.reached == 1
    assert uniform.ratio_low > 1
    assert uniform.verdict == "first better"
    assert adaptive.low <= adaptive.median <= adaptive.high


@pytest.mark.slow
def test_counting_executed_ideas_only_helps_where_many_states_are_hopeless():
    named = ablations()
    names = ("adaptive", "uniform", "format errors counted", "bare formula")
    world = World(hopeless=0.6)
    _, uniform, counted, bare = compare({name: named[name] for name in names}, world, range(10))
    assert uniform.ratio_low > 1.5
    assert counted.ratio > 1
    assert bare.ratio > 1


@pytest.mark.slow
def test_retirement_helps_where_little_is_left_to_learn():
    named = ablations()
    names = ("adaptive", "no retirement")
    world = World(hopeless=0.75)
    _, without = compare({name: named[name] for name in names}, world, range(10))
    assert without.ratio > 1
