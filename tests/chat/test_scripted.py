"""The scripted model: replies in order, failures on command, and files that are no script."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import yaml

from mle_ideator.chat.scripted import ScriptedModel
from mle_ideator.errors import AgentError, ContextOverflow, UsageError
from mle_ideator.messages import CallOptions, Message, ToolCall
from mle_ideator.protocols import ChatModel
from mle_ideator.registry import create

HELLO = (Message("system", "Be brief."), Message("user", "Hello there"))


@pytest.fixture
def model(tmp_path: Path):
    def make(script: object) -> ScriptedModel:
        file = tmp_path / "replies.yaml"
        file.write_text(script if isinstance(script, str) else yaml.safe_dump(script))
        return ScriptedModel(str(file))

    return make


async def test_the_nth_call_gets_the_nth_reply_and_the_last_one_repeats(model):
    scripted = model(["one", {"text": "two", "reasoning": "why"}, "three"])
    told = [await scripted.complete(HELLO) for _ in range(5)]
    assert [c.text for c in told] == ["one", "two", "three", "three", "three"]
    assert told[1].reasoning == "why"
    assert {c.finish_reason for c in told} == {"stop"}


async def test_it_is_a_free_chat_model_that_the_registry_finds(tmp_path):
    file = tmp_path / "one.yaml"
    file.write_text("- hello")
    found = create("chat_models", f"scripted:{file}")
    assert isinstance(found, ChatModel)
    assert (found.name, found.priced, found.context_tokens) == (f"scripted:{file}", True, None)
    told = await found.complete(HELLO, CallOptions(max_cost_usd=0.0))
    assert told.usage.cost_usd == told.usage.at_most_usd == 0.0


async def test_calls_at_once_get_each_reply_once(model):
    texts = [f"reply {i}" for i in range(40)]
    replies = [{"text": t, "latency_s": 0.001 * (i % 7)} for i, t in enumerate(texts)]
    scripted = model(replies)
    told = await asyncio.gather(*(scripted.complete(HELLO) for _ in texts))
    assert [c.text for c in told] == texts


async def test_usage_is_estimated_unless_it_is_given(model):
    given = {"input_tokens": 900, "output_tokens": 12, "cached_tokens": 800}
    scripted = model(["12345678", {"text": "", "usage": given}, {"usage": {"input_tokens": None}}])
    first, second, third = [(await scripted.complete(HELLO)).usage for _ in range(3)]
    assert (first.calls, first.input_tokens, first.output_tokens) == (1, 6, 2)
    assert (second.calls, second.input_tokens, second.cached_tokens) == (1, 900, 800)
    assert third.input_tokens is None
    assert third.tokens is None


async def test_latency_is_for_all_replies_or_for_one_and_is_told(model):
    scripted = model({"latency_s": 0.05, "replies": ["slow", {"text": "fast", "latency_s": 0}]})
    slow, fast = await scripted.complete(HELLO), await scripted.complete(HELLO)
    assert 0.05 <= slow.usage.waited_s < 1
    assert fast.usage.waited_s < 0.05


async def test_tool_calls(model):
    call = {"name": "run", "arguments": {"code": "1 + 1"}}
    scripted = model([{"calls": [call, {"name": "end", "arguments": "{oh", "id": "x"}]}])
    told = await scripted.complete(HELLO)
    assert told.finish_reason == "tool_calls"
    assert told.calls == (
        ToolCall("call-1-1", "run", '{"code":"1 + 1"}'),
        ToolCall("x", "end", "{oh"),
    )
    assert told.usage.output_tokens


@pytest.mark.parametrize(
    ("error", "kind"), [("busy", AgentError), ("broken", AgentError), ("overflow", ContextOverflow)]
)
async def test_a_failure_takes_its_turn(model, error, kind):
    scripted = model([{"error": error}, "after"])
    with pytest.raises(kind, match=r"^scripted:.*replies\.yaml: the script says") as caught:
        await scripted.complete(HELLO)
    assert type(caught.value) is kind
    assert (await scripted.complete(HELLO)).text == "after"


async def test_more_than_the_context_overflows_and_takes_no_reply(model):
    scripted = model({"context_tokens": 10, "replies": ["one", "two"]})
    with pytest.raises(ContextOverflow):
        await scripted.complete([Message("user", "x" * 44)])
    assert (await scripted.complete([Message("user", "x" * 40)])).text == "one"


async def test_a_stale_recording_is_noticed(model):
    scripted = model([{"text": "fine", "expect": r"Hello\b"}, {"text": "no", "expect": "score"}])
    assert (await scripted.complete(HELLO)).text == "fine"
    with pytest.raises(AgentError, match="call 2 does not fit its script, which expects 'score'"):
        await scripted.complete(HELLO)


async def test_a_cancelled_call_ends_at_once(model):
    scripted = model([{"text": "never", "latency_s": 60}, "next"])
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(scripted.complete(HELLO), 0.05)
    assert (await scripted.complete(HELLO)).text == "next"


@pytest.mark.parametrize(
    "script",
    [
        "",
        "[]",
        "replies: []",
        "just a text",
        "- 3",
        "- {txt: typo}",
        "- {text: [a]}",
        "- {error: explosion}",
        "- {finish_reason: maybe}",
        "- {calls: [{arguments: x}]}",
        "- {usage: {input_tokens: many}}",
        "- {text: a, expect: '('}",
        "reply: [a]",
        "{latency_s: soon, replies: [a]}",
        "- [unclosed",
        "- {a: b",
        "- \x00",
    ],
)
def test_what_is_no_script_is_refused_in_one_line(model, script):
    with pytest.raises(UsageError, match=r"the scripted model's file .*replies\.yaml") as caught:
        model(script)
    assert "\n" not in str(caught.value)


def test_a_file_that_can_not_be_read_is_refused(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        ScriptedModel(str(tmp_path / "missing.yaml"))
    (tmp_path / "latin.yaml").write_bytes(b"- \xff\xfe\xfa")
    with pytest.raises(UsageError, match="is no list of replies"):
        ScriptedModel(str(tmp_path / "latin.yaml"))
    with pytest.raises(UsageError, match="needs an argument"):
        create("chat_models", "scripted")
