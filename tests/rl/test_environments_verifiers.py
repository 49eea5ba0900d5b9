"""The task set of verifiers, end to end: an agent asks a model over HTTP, a rollout rewards it."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import types

import pytest

from mle_ideator.rl.environments.one_step import OneStep
from tests.rl.made_rollouts import BREAKS, MadeRollouts, answer, cards

vf = pytest.importorskip("verifiers.v1")
uvicorn = pytest.importorskip("uvicorn")
from mle_ideator.rl.environments.verifiers_tasks import (  # noqa: E402
    RESULT,
    IdeaTasks,
    OneAnswer,
)

pytestmark = pytest.mark.filterwarnings("default")
"""What verifiers itself warns of is its own business."""

GOOD = answer("Use gradient boosting.")
PLUGIN = "tests_of_ideas"


class Model:
    """An OpenAI-compatible server that answers the same to everything."""

    def __init__(self, text, finish_reason="stop"):
        self.text, self.finish_reason, self.bodies = text, finish_reason, []
        self._server = uvicorn.Server(
            uvicorn.Config(self._app, interface="asgi3", log_level="warning")
        )
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"

    async def _app(self, scope, receive, send):
        if scope["type"] != "http":
            return
        body = b""
        while (message := await receive())["type"] == "http.request":
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        self.bodies.append(json.loads(body))
        choice = {
            "index": 0,
            "finish_reason": self.finish_reason,
            "message": {"role": "assistant", "content": self.text},
        }
        told = {
            "id": "c", "object": "chat.completion", "created": 0, "model": "m",
            "choices": [choice],
            "usage": {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10},
        }  # fmt: skip
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(told).encode()})

    async def __aenter__(self):
        self._work = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)
        return self

    async def __aexit__(self, *exc):
        self._server.should_exit = True
        await self._work


@pytest.fixture
def rollouts():
    return MadeRollouts(cards(20))


@pytest.fixture
def plugin(rollouts, monkeypatch):
    """A module of a user's own, as verifiers finds task sets and harnesses."""

    class MyIdeas(IdeaTasks):
        def __init__(self, config):
            super().__init__(config, OneStep(rollouts=rollouts))

    module = types.ModuleType(PLUGIN)
    module.MyIdeas, module.OneAnswer = MyIdeas, OneAnswer
    module.__all__ = ["MyIdeas", "OneAnswer"]
    monkeypatch.setitem(sys.modules, PLUGIN, module)
    monkeypatch.setenv("KEY_OF_TESTS", "key")
    return module


async def traces(plugin, model, number):
    client = vf.EvalClientConfig(base_url=model.url, api_key_var="KEY_OF_TESTS")
    config = vf.AgentConfig(
        harness={"id": PLUGIN}, runtime=vf.SubprocessConfig(), model="m", client=client
    )
    tasks = list(plugin.MyIdeas(vf.TasksetConfig(id=PLUGIN)).take(number))
    async with vf.make_agent(config) as agent:
        return tasks, [await agent.run(task) for task in tasks]


async def test_rewards_are_those_of_rollouts(plugin, rollouts):
    async with Model(GOOD) as model:
        tasks, done = await traces(plugin, model, 12)
    assert all(trace.ok for trace in done)
    assert {trace.reward for trace in done} == {0.0, 1.0}
    assert [trace.task.key for trace in done] == [card.id for card in rollouts.cards()][:12]
    assert done[0].info[RESULT]["state"] == tasks[0].data.state
    prompt = OneStep(rollouts=rollouts).prompt(tasks[0].data.state)
    said = [(message["role"], message["content"]) for message in model.bodies[0]["messages"]]
    assert said == [(message.role, message.text) for message in prompt]


async def test_rubbish_costs_one_and_so_does_an_answer_that_was_cut(plugin):
    async with Model("boosting, perhaps") as model:
        _, (trace,) = await traces(plugin, model, 1)
    assert (trace.ok, trace.reward) == (True, -1)
    async with Model(GOOD, finish_reason="length") as model:
        _, (trace,) = await traces(plugin, model, 1)
    assert trace.reward == -1
    assert trace.is_truncated


async def test_a_broken_runtime_is_an_error_of_the_trace(plugin):
    async with Model(answer(BREAKS)) as model:
        _, (trace,) = await traces(plugin, model, 1)
    assert not trace.ok
    assert trace.last_error.type == "TaskError"
    assert "the sandbox is gone" in trace.last_error.message
    assert trace.rewards["one_step_reward"] is None


def test_the_task_set_is_one_as_any_other(plugin, rollouts):
    tasks = plugin.MyIdeas(vf.TasksetConfig(id=PLUGIN))
    assert len(list(tasks)) == 20
    wanted = rollouts.cards()[3].id
    assert [task.data.state for task in tasks.include(ids=[wanted])] == [wanted]
    data = next(iter(tasks)).data
    again = type(data).model_validate_json(data.model_dump_json())
    assert again == data
