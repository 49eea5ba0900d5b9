"""Episodes end to end: a help state of a store, a raw answer, a real rollout in a worker."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mle_ideator.benchmarks.running import run_to_end, set_up
from mle_ideator.config import RunConfig
from mle_ideator.errors import UsageError
from mle_ideator.limits import Limits
from mle_ideator.rl.environments.stored import stored_steps
from mle_ideator.rl.states import StateStore, harvest
from tests.benchmarks.twice import write_task
from tests.rl.made_rollouts import answer
from tests.rl.rollout_agents import solves

pytest.importorskip("gymnasium")
from mle_ideator.rl.environments.gym_env import IdeaEnv


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    """One help state, in which the best solution is y = x and the right one is y = 2 x."""
    folder = tmp_path_factory.mktemp("collected")
    config = RunConfig(
        task=str(write_task(folder / "twice")),
        implementer="tests.rl.rollout_agents:DoesAsTold",
        ideator="null",
        sandbox="local",
        preload=("pandas",),
        keep_help_states=True,
        limits=Limits(steps=3),
    )
    run = folder / "run"
    run.mkdir()
    asyncio.run(run_to_end(set_up(config, run)))
    with StateStore(folder / "states.db") as store:
        harvest(run, store)
    return folder / "states.db"


@pytest.mark.slow
def test_raw_answers_are_executed_from_the_stored_state(store: Path):
    env = IdeaEnv(stored_steps(store, workers=1))
    rewards = []
    for text in (answer(solves(1.5)), answer(solves(0.5)), "no idea"):
        prompt, _ = env.reset(seed=0)
        assert "Validation score" in prompt
        rewards.append(env.step(text)[1])
    env.close()
    assert rewards == [1.0, 0.0, -1.0]


def test_a_store_that_is_not_there_is_told(tmp_path: Path):
    with pytest.raises(UsageError, match="no store of help states"):
        IdeaEnv(stored_steps(tmp_path / "nothing.db"))
    assert not list(tmp_path.iterdir())
