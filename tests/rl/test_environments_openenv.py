"""The OpenEnv server over a real socket, asked by OpenEnv's own client."""

from __future__ import annotations

import asyncio
import json
import socket
import urllib.request

import pytest

from mle_ideator.rl.environments.one_step import OneStep
from tests.rl.made_rollouts import BREAKS, MadeRollouts, answer, cards

pytest.importorskip("openenv.core.env_server")
uvicorn = pytest.importorskip("uvicorn")
from openenv.core.generic_client import GenericEnvClient  # noqa: E402
from websockets.exceptions import ConnectionClosed  # noqa: E402

from mle_ideator.rl.environments import openenv_server  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")
"""What OpenEnv itself warns of is its own business."""

GOOD = answer("Use gradient boosting.")


class Served:
    """A server on a free port of this machine, in the test's own loop."""

    def __init__(self, rollouts, sessions=64):
        app = openenv_server.app_of(OneStep(rollouts=rollouts), sessions)
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    async def __aenter__(self):
        self._work = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)
        return self

    async def __aexit__(self, *exc):
        self._server.should_exit = True
        await self._work

    def client(self, **options):
        return GenericEnvClient(base_url=self.url, **options)


async def judged(client, text, **more):
    """Submit and poll until it is done."""
    told = await client.step({"answer": text, **more})
    assert (told.observation["status"], told.done, told.reward) == ("running", False, None)
    polls = 0
    while not told.done:
        told = await client.step({"job": told.observation["job"]})
        polls += 1
    return told, polls


async def test_an_episode_over_the_wire():
    async with Served(MadeRollouts(cards(20))) as server, server.client() as client:
        rewards = []
        for seed in range(12):
            shown = await client.reset(seed=seed)
            assert shown.observation["status"] == "asked"
            assert shown.observation["prompt"][0]["role"] == "system"
            told, _ = await judged(client, GOOD)
            assert told.observation["state"] == shown.observation["state"]
            rewards.append(told.reward)
        assert set(rewards) == {0.0, 1.0}
        told, _ = await judged(client, "no idea")
        assert (told.reward, told.observation["status"]) == (-1, "done")
        told, _ = await judged(client, answer(BREAKS))
        assert (told.reward, told.observation["status"]) == (None, "masked")
        assert "the sandbox is gone" in told.observation["result"]["detail"]


async def test_a_long_rollout_does_not_outlast_a_message(monkeypatch):
    monkeypatch.setattr(openenv_server, "POLL_S", 0.1)
    rollouts = MadeRollouts(cards(3), latency_s=1.0)
    async with Served(rollouts) as server, server.client(message_timeout_s=0.8) as client:
        await client.reset(state="a0000")
        told, polls = await judged(client, GOOD)
        assert polls >= 4
        assert told.reward in (0.0, 1.0)


async def test_sessions_run_at_the_same_time_and_keep_apart():
    rollouts = MadeRollouts(cards(12), latency_s=0.3)

    async def episode(server, state):
        async with server.client() as client:
            await client.reset(state=state)
            told, _ = await judged(client, GOOD)
            return told.observation["state"]

    async with Served(rollouts) as server:
        ids = [card.id for card in rollouts.cards()]
        assert await asyncio.gather(*(episode(server, state) for state in ids)) == ids
    assert rollouts.most_at_once > 3


async def test_a_job_outlives_its_connection_and_is_executed_once():
    rollouts = MadeRollouts(cards(3), latency_s=0.3)
    async with Served(rollouts) as server:
        async with server.client() as client:
            told = await client.step({"answer": GOOD, "state": "a0000"})
        async with server.client() as client:
            again = await client.step({"answer": GOOD, "state": "a0000"})
            assert again.observation["job"] == told.observation["job"]
            done = await client.step({"job": told.observation["job"]})
            assert done.done
        body = json.dumps({"action": {"job": told.observation["job"]}}).encode()
        request = urllib.request.Request(
            f"{server.url}/step", body, {"content-type": "application/json"}
        )
        plain = await asyncio.to_thread(urllib.request.urlopen, request)
        assert json.load(plain)["reward"] == done.reward
    assert len(rollouts.jobs) == 1


async def test_what_broke_is_tried_again_when_it_is_submitted_again():
    rollouts = MadeRollouts(cards(3))
    async with Served(rollouts) as server, server.client() as client:
        await client.reset(state="a0000")
        for _ in range(2):
            await judged(client, answer(BREAKS))
    assert len(rollouts.jobs) == 2


async def test_wrong_use_is_told_and_the_session_goes_on():
    async with Served(MadeRollouts(cards(3))) as server, server.client() as client:
        for action, message in (
            ({"answer": GOOD}, "call reset first"),
            ({"answer": GOOD, "state": "nowhere"}, "no help state nowhere"),
            ({"job": "j"}, "there is no job 'j'"),
            ({}, "either an answer or the id of a job"),
            ({"answer": GOOD, "job": "j"}, "either an answer or the id of a job"),
            ({"answers": GOOD}, "Invalid message"),
        ):
            with pytest.raises(RuntimeError, match=message):
                await client.step(action)
        await client.reset(state="a0000")
        assert (await judged(client, GOOD))[0].done


async def test_there_are_no_more_sessions_than_allowed():
    async with Served(MadeRollouts(cards(3)), sessions=1) as server, server.client() as client:
        await client.reset(seed=0)
        async with server.client() as other:
            # which of both depends on who is first, the message or the end of the connection
            with pytest.raises((RuntimeError, ConnectionClosed)):
                await other.reset(seed=0)
        assert (await judged(client, GOOD))[0].done


async def test_finished_jobs_are_forgotten_in_the_end(monkeypatch):
    monkeypatch.setattr(openenv_server, "MOST_KEPT", 3)
    jobs = openenv_server.Jobs(OneStep(rollouts=MadeRollouts(cards(1))))
    submitted = []
    for number in range(6):
        submitted.append(jobs.submit("a0000", f"answer {number}", False))
        await jobs.result(submitted[-1])
    with pytest.raises(Exception, match="forgotten"):
        await jobs.result(submitted[0])
    assert (await jobs.result(submitted[-1])).reward == -1
