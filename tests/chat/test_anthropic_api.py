"""What is particular to the Messages API."""

from __future__ import annotations

import json

import pytest

from mle_ideator.chat.anthropic_api import MOST_MARKS
from mle_ideator.chat.prices import OVERRIDE
from mle_ideator.errors import UsageError
from mle_ideator.messages import CallOptions, Message, Tool, ToolCall
from mle_ideator.registry import create
from tests.chat.misbehaving import fails

ASK = (Message("user", "Hello?"),)
TOOL = Tool("run", "Runs code.", {"type": "object"})


def conversation(turns):
    """A stable head, and turns of which each third one ends a stable part."""
    yield Message("system", "Be terse.", stable=True)
    for n in range(turns):
        yield Message("user", f"Question {n}?")
        yield Message("assistant", f"Answer {n}.", stable=n % 3 == 2)
    yield Message("user", "And now?")


def marked(body):
    blocks = [*body.get("system", []), *(b for m in body["messages"] for b in m["content"])]
    return [b["text"] for b in blocks if "cache_control" in b]


def test_a_missing_key_is_told_at_once(monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    with pytest.raises(UsageError, match=r"needs an API key: export ANTHROPIC_API_KEY=… first\."):
        create("chat_models", "anthropic:claude-opus-5-5")


@pytest.mark.parametrize("end", ["", "/", "/v1"])
async def test_the_base_url_of_the_environment(server, monkeypatch, end):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url + end)
    model = create("chat_models", "anthropic:m")
    assert (await model.complete(ASK)).text == "Hello there."
    assert server.requests[-1].path == "/v1/messages"
    assert "a-key" in json.dumps(server.requests[-1].headers)
    await model.aclose()


@pytest.mark.parametrize("turns", [0, 2, 3, 6, 30])
async def test_caches_end_where_the_messages_are_stable(new_model, server, turns):
    await new_model("anthropic").complete(list(conversation(turns)))
    ends = [f"Answer {n}." for n in range(turns) if n % 3 == 2]
    assert marked(server.bodies[0]) == ["Be terse.", *ends[1 - MOST_MARKS :]]
    assert json.dumps(server.bodies[0]).count("cache_control") <= 4


async def test_without_stable_messages_nothing_is_cached(new_model, server):
    await new_model("anthropic").complete(ASK)
    assert "cache_control" not in json.dumps(server.bodies[0])


async def test_equal_messages_do_not_share_a_mark(new_model, server):
    said = (Message("user", "Go on."), Message("assistant", "So.")) * 8
    stable = [Message(m.role, m.text, stable=True) for m in said]
    await new_model("anthropic").complete((*stable, *ASK))
    assert json.dumps(server.bodies[0]).count("cache_control") == MOST_MARKS


async def test_the_prefix_stays_byte_identical(new_model, server):
    model = new_model("anthropic")
    for turns in (4, 5):
        await model.complete(list(conversation(turns)))
    first, second = (body["messages"][:-1] for body in server.bodies)
    assert json.dumps(second).startswith(json.dumps(first)[:-1])


async def test_neighbours_share_a_turn(new_model, server):
    said = (
        Message("system", "Be terse."),
        Message("user", "One."),
        Message("user", "Two."),
        Message("assistant", "Three."),
        Message("assistant", " \n"),
        Message("user", "Four."),
    )
    await new_model("anthropic").complete(said)
    turns = server.bodies[0]["messages"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
    assert [[b["text"] for b in t["content"]] for t in turns] == [
        ["One.", "Two."],
        ["Three."],
        ["Four."],
    ]
    assert server.bodies[0]["system"] == [{"type": "text", "text": "Be terse."}]


async def test_calls_and_their_results(new_model, server):
    said = (
        *ASK,
        Message("assistant", "I run it.", calls=(ToolCall("a", "run", '{"code": "1"}'),)),
        Message("tool", "1", call_id="a", stable=True),
        Message("user", "Go on."),
    )
    await new_model("anthropic").complete(said, CallOptions(tools=(TOOL,)))
    body = server.bodies[0]
    assert body["tools"][0]["input_schema"] == {"type": "object"}
    assert body["messages"][1]["content"][1] == {
        "type": "tool_use",
        "id": "a",
        "name": "run",
        "input": {"code": "1"},
    }
    result, text = body["messages"][2]["content"]
    assert (result["tool_use_id"], result["content"]) == ("a", "1")
    assert result["cache_control"] == {"type": "ephemeral"}
    assert text["text"] == "Go on."


async def test_all_options(new_model, server):
    options = CallOptions(
        max_tokens=500,
        temperature=0.0,
        effort="high",
        stop=("END",),
        seed=7,
        json_schema={"type": "object"},
    )
    completion = await new_model("anthropic").complete(ASK, options)
    body = server.bodies[0]
    assert body["max_tokens"] == 500
    assert body["temperature"] == 0.0
    assert body["stop_sequences"] == ["END"]
    assert body["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert body["output_config"] == {
        "effort": "high",
        "format": {"type": "json_schema", "schema": {"type": "object"}},
    }
    assert completion.dropped == ("seed",)


@pytest.mark.parametrize(("most", "budget"), [(50_000, 16384), (8192, 4096), (1000, None)])
async def test_effort_as_a_budget_for_models_that_know_no_effort(new_model, server, most, budget):
    server.will(fails(400, "adaptive thinking is not supported on this model"))
    options = CallOptions(max_tokens=most, effort="high")
    completion = await new_model("anthropic").complete(ASK, options)
    assert completion.dropped == ()
    thinking = {"type": "enabled", "budget_tokens": budget} if budget else None
    assert server.bodies[-1].get("thinking") == thinking
    assert "output_config" not in server.bodies[-1]


async def test_temperature_beside_thinking(new_model, server):
    server.will(fails(400, "`temperature` may only be set to 1 when thinking is enabled."))
    options = CallOptions(effort="low", temperature=0.2)
    completion = await new_model("anthropic").complete(ASK, options)
    assert completion.dropped == ("temperature",)
    assert "thinking" in server.bodies[-1]


async def test_cost(new_model, tmp_path, monkeypatch):
    """50 fresh, 40 cached and 10 written tokens in, 30 out."""
    own = tmp_path / "prices.yaml"
    own.write_text("as_of: x\nmodels: {m: {input: 10, cached: 1, written: 20, output: 100}}")
    monkeypatch.setenv(OVERRIDE, str(own))
    usage = (await new_model("anthropic").complete(ASK)).usage
    assert usage.cost_usd * 1e6 == pytest.approx(50 * 10 + 40 * 1 + 10 * 20 + 30 * 100)
