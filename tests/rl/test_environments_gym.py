"""The gymnasium environment, from registration to reward."""

from __future__ import annotations

import asyncio
import math
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import pytest

from mle_ideator.errors import UsageError
from mle_ideator.rl.environments.one_step import OneStep
from tests.rl.made_rollouts import BREAKS, MadeRollouts, answer, cards

gymnasium = pytest.importorskip("gymnasium")
from mle_ideator.rl.environments.gym_env import IdeaEnv  # noqa: E402

GOOD = answer("Use gradient boosting.")


@pytest.fixture
def env():
    env = IdeaEnv(OneStep(rollouts=MadeRollouts(cards(20))))
    yield env
    env.close()


def test_gymnasium_accepts_it(env):
    from gymnasium.utils.env_checker import check_env

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # it asks for a spec, which only registered environments have
        warnings.filterwarnings("ignore", message=".*spec.*")
        check_env(env, skip_render_check=True)


def test_episodes_end_with_the_rollouts_reward(env):
    rewards = []
    for seed in range(30):
        observation, info = env.reset(seed=seed)
        assert observation == "\n\n".join(message["content"] for message in info["messages"])
        assert env.observation_space.contains(observation)
        assert env.action_space.contains(GOOD)
        _, reward, terminated, truncated, told = env.step(GOOD)
        assert (terminated, truncated, told["masked"]) == (True, False, False)
        assert told["state"] == info["state"]
        rewards.append(reward)
    assert set(rewards) == {0.0, 1.0}


def test_an_invalid_answer_costs_one_and_a_broken_runtime_is_no_reward(env):
    env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step("no idea at all")
    assert (reward, terminated, truncated, info["outcome"]) == (-1, True, False, "invalid_format")
    env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step(answer(BREAKS))
    assert math.isnan(reward)
    assert (terminated, truncated, info["masked"]) == (False, True, True)
    assert "the sandbox is gone" in info["detail"]


def test_states_are_named_or_drawn_by_the_seed(env):
    _, info = env.reset(options={"state": "b0004"})
    assert info["state"] == "b0004"
    drawn = [env.reset(seed=seed)[1]["state"] for seed in range(40)]
    assert drawn == [env.reset(seed=seed)[1]["state"] for seed in range(40)]
    assert len(set(drawn)) > 10


def test_wrong_use_is_told(env):
    with pytest.raises(UsageError, match="call reset"):
        env.step(GOOD)
    env.reset(seed=0)
    env.step(GOOD)
    with pytest.raises(UsageError, match="call reset"):
        env.step(GOOD)
    with pytest.raises(UsageError, match="no help state nowhere"):
        env.reset(options={"state": "nowhere"})
    empty = IdeaEnv(OneStep(rollouts=MadeRollouts([])))
    with pytest.raises(UsageError, match="no help state to draw"):
        empty.reset(seed=0)
    empty.close()


def test_what_it_opens_it_closes():
    told = []

    @asynccontextmanager
    async def opened():
        told.append("opened")
        yield OneStep(rollouts=MadeRollouts(cards(3)))
        told.append("closed")

    env = IdeaEnv(opened())
    env.reset(seed=0)
    assert env.step("no idea")[1] == -1
    assert told == ["opened"]
    env.close()
    env.close()
    assert told == ["opened", "closed"]
    loop = asyncio.new_event_loop()
    with pytest.raises(UsageError, match="open the steps in that loop"):
        IdeaEnv(opened(), loop=loop)
    loop.close()


async def test_several_share_rollouts_in_a_loop_that_runs():
    rollouts = MadeRollouts(cards(8), latency_s=0.2)
    loop = asyncio.get_running_loop()
    envs = [IdeaEnv(OneStep(rollouts=rollouts), loop=loop) for _ in range(8)]

    def episode(env):
        env.reset(seed=0)
        return env.step(GOOD)[1]

    with ThreadPoolExecutor(8) as threads:
        work = [loop.run_in_executor(threads, episode, env) for env in envs]
        rewards = await asyncio.gather(*work)
    assert len(set(rewards)) == 1
    assert rollouts.most_at_once > 1
    for env in envs:
        env.close()
    assert loop.is_running()
