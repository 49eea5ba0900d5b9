"""What every client of an HTTP API does, whatever the server does. Real HTTP on loopback."""

from __future__ import annotations

import asyncio
import json
import re
import time
import traceback

import pytest

from mle_ideator.chat.calls import Patience
from mle_ideator.errors import AgentError, ContextOverflow
from mle_ideator.messages import CallOptions, Message, Tool
from mle_ideator.protocols import ChatModel
from mle_ideator.registry import create
from mle_ideator.types import Usage
from tests.chat.conftest import CLIENTS, SECRET
from tests.chat.dialects import DIALECTS, Reply
from tests.chat.misbehaving import ACTS, SHORT_WAIT_S, fails, refuses

ASK = (Message("system", "You are terse."), Message("user", "Hello?"))
TOOL = Tool("run", "Runs code.", {"type": "object", "properties": {"code": {"type": "string"}}})
PASSING = (
    "busy",
    "retry_after",
    "broken",
    "bad_gateway",
    "overloaded",
    "stall",
    "silence",
    "cut",
    "early_end",
    "garbage",
    "odd_json",
    "error_in_stream",
    "empty",
)
BILLED = {"stall", "silence", "cut", "early_end", "garbage", "odd_json", "error_in_stream", "empty"}
FATAL = {
    "no_credit": "no credit is left",
    "wrong_key": "_API_KEY was refused",
    "no_model": "knows no such model or address",
    "odd_request": "something that nobody has seen before",
}
OPTIONS = {
    "temperature": 0.5,
    "stop": ("END",),
    "seed": 7,
    "effort": "low",
    "json_schema": {"type": "object"},
    "tools": (TOOL,),
}

pytestmark = pytest.mark.parametrize("client", CLIENTS)


def words_of(client: str) -> dict[str, str]:
    """How the client's dialect refuses options."""
    number = {"openai": 0, "vllm": 0, "openai-responses": 1, "anthropic": 2}[client]
    return DIALECTS[number].refused


async def test_answers(client, new_model, server):
    completion = await new_model(client).complete(ASK)
    assert completion.text == "Hello there."
    assert completion.finish_reason == "stop"
    assert completion.dropped == ()
    assert len(server.requests) == 1


async def test_it_is_a_chat_model_with_a_name(client, new_model, server):
    model = new_model(client)
    assert isinstance(model, ChatModel)
    assert model.name == f"{client}:m@{server.url}/v1"


async def test_usage_is_told_apart(client, new_model):
    usage = (await new_model(client).complete(ASK)).usage
    assert (usage.input_tokens, usage.cached_tokens) == (100, 40)
    assert (usage.output_tokens, usage.reasoning_tokens) == (30, 20)
    assert usage.calls == 1
    assert 0 < usage.waited_s < 5


async def test_missing_usage_is_unknown(client, new_model, server):
    server.will("no_usage")
    usage = (await new_model(client).complete(ASK)).usage
    assert usage.calls == 1
    assert usage.input_tokens is None
    assert usage.output_tokens is None
    assert usage.reasoning_tokens is None


@pytest.mark.parametrize(
    ("odd", "read"),
    [
        ('"30"', 30),
        ("4.5", None),
        ("-30", None),
        ("NaN", None),
        ("[3]", None),
        ("1" + "0" * 30, None),
    ],
)
async def test_odd_usage_does_not_spoil_an_answer(client, new_model, server, odd, read):
    async def act(exchange):
        await exchange.start(200, "text/event-stream")
        written = "".join(exchange.dialect.events(Reply()))
        await exchange.write(re.sub(r'(_tokens": )\d+', rf"\g<1>{odd}", written), more=False)

    server.will(act)
    completion = await new_model(client, model="gpt-5").complete(ASK)
    assert completion.text == "Hello there."
    assert completion.finish_reason == "stop"
    assert completion.usage.output_tokens == read
    assert (completion.usage.cost_usd or 0.0) >= 0
    assert len(server.requests) == 1


@pytest.mark.parametrize("act", PASSING)
async def test_what_passes_is_tried_again(client, new_model, server, act):
    server.will(act)
    completion = await new_model(client).complete(ASK)
    assert completion.text == "Hello there."
    assert len(server.requests) == 2
    assert completion.usage.calls == (2 if act in BILLED else 1)


async def test_several_different_failures_in_a_row(client, new_model, server):
    server.will("broken", "cut", "retry_after")
    assert (await new_model(client).complete(ASK)).text == "Hello there."
    assert len(server.requests) == 4


async def test_tries_are_bounded(client, new_model, server):
    server.will(*["broken"] * 9)
    with pytest.raises(AgentError, match=r"failed 4 times, the last time: .*had an error"):
        await new_model(client).complete(ASK)
    assert len(server.requests) == 4


@pytest.mark.parametrize("act", FATAL)
async def test_what_does_not_pass_is_one_clear_line(client, new_model, server, act):
    server.will(act)
    with pytest.raises(AgentError, match=FATAL[act]) as caught:
        await new_model(client).complete(ASK)
    assert len(server.requests) == 1
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{client}:m@")


async def test_retry_after_is_honoured(client, new_model, server):
    server.will("retry_after")
    start = time.monotonic()
    completion = await new_model(client).complete(ASK)
    assert time.monotonic() - start >= SHORT_WAIT_S
    assert completion.usage.waited_s >= SHORT_WAIT_S


async def test_retry_after_beyond_the_patience_ends_the_call(client, new_model, server):
    server.will("long_retry_after")
    with pytest.raises(AgentError, match="it asks to wait 3600 s"):
        await new_model(client).complete(ASK)
    assert len(server.requests) == 1


async def test_slow_is_no_failure(client, new_model, server):
    server.will("slow")
    assert (await new_model(client).complete(ASK)).text == "Hello there."
    assert len(server.requests) == 1


async def test_overflow_is_told_and_its_size_learnt(client, new_model, server):
    server.will("overflow")
    model = new_model(client)
    with pytest.raises(ContextOverflow):
        await model.complete(ASK, CallOptions(max_tokens=1000))
    assert len(server.requests) == 1
    if client != "openai-responses":  # OpenAI does not tell it there
        assert model.context_tokens == 4096


async def test_a_page_instead_of_a_stream(client, new_model, server):
    server.will(*["page"] * 4)
    with pytest.raises(AgentError, match=r"URL|the stream ended before the answer did"):
        await new_model(client).complete(ASK)


async def test_reasoning_is_kept_apart(client, new_model, server):
    server.will("reasoning")
    completion = await new_model(client).complete(ASK)
    assert (completion.reasoning, completion.text) == ("Let me think.", "Hello there.")


async def test_cut_at_the_limit(client, new_model, server):
    server.will("length", "all_reasoning")
    model = new_model(client)
    completion = await model.complete(ASK)
    assert (completion.text, completion.finish_reason) == ("Hello th", "length")
    completion = await model.complete(ASK)
    assert (completion.text, completion.finish_reason) == ("", "length")


async def test_refusal(client, new_model, server):
    server.will("refusal")
    completion = await new_model(client).complete(ASK)
    assert completion.finish_reason == "refused"
    assert completion.text == "I will not."


@pytest.mark.parametrize(("act", "arguments"), [("call", '{"code": "1 + 1"}'), ("bad_call", None)])
async def test_tool_calls(client, new_model, server, act, arguments):
    server.will(act)
    completion = await new_model(client).complete(ASK, CallOptions(tools=(TOOL,)))
    (call,) = completion.calls
    assert (call.id, call.name) == ("call_7", "run")
    assert call.arguments == (arguments or '{"code": "1 + ')
    assert completion.finish_reason == "tool_calls"
    assert "run" in json.dumps(server.bodies[0]["tools"])


async def test_a_bad_call_goes_back_as_json(client, new_model, server):
    server.will("bad_call")
    model = new_model(client)
    first = await model.complete(ASK, CallOptions(tools=(TOOL,)))
    answers = (
        Message("assistant", first.text, calls=first.calls),
        Message("tool", "That was no JSON.", call_id="call_7"),
    )
    await model.complete((*ASK, *answers), CallOptions(tools=(TOOL,)))
    sent = json.dumps(server.bodies[1])
    assert "unreadable" in sent
    assert "That was no JSON." in sent
    assert sent.count("call_7") == 2


@pytest.mark.parametrize("option", OPTIONS)
async def test_a_refused_option_is_dropped_once(client, new_model, server, option):
    if option not in words_of(client):
        completion = await new_model(client).complete(ASK, CallOptions(**{option: OPTIONS[option]}))
        assert completion.dropped == (option,)
        assert len(server.requests) == 1
        return
    model = new_model(client)
    tries = 3 if (client, option) == ("anthropic", "effort") else 2  # it has another way to say it
    server.will(*[refuses(option)] * 9)
    for _ in range(2):
        completion = await model.complete(ASK, CallOptions(**{option: OPTIONS[option]}))
        assert completion.text == "Hello there."
        assert completion.dropped == (option,)
    assert len(server.requests) == tries + 1
    assert server.bodies[-1] == server.bodies[-2]
    assert server.bodies[-1] != server.bodies[0]


async def test_what_is_not_asked_for_is_not_sent(client, new_model, server):
    await new_model(client).complete(ASK)
    known = {"model", "stream", "messages", "input", "system", "store", "stream_options"}
    limits = {"max_tokens", "max_output_tokens", "max_completion_tokens"}
    assert set(server.bodies[0]) <= known | limits


async def test_calls_that_are_refused_an_option_at_once(client, new_model, server):
    server.will(*[refuses("temperature")] * 9)
    model = new_model(client)
    calls = [model.complete(ASK, CallOptions(temperature=0.5)) for _ in range(3)]
    completions = await asyncio.gather(*calls)
    assert {c.dropped for c in completions} == {("temperature",)}


async def test_the_key_is_sent_and_never_shown(client, new_model, server, caplog, capfd):
    echo = fails(400, f"{SECRET} is not welcome")
    acts = [ACTS[a] for a in ("ok", "broken", "garbage", "cut", "call", *FATAL)]
    model = new_model(client, patience=Patience(tries=1))
    told = repr(model) + repr(vars(model.endpoint))
    for act in (echo, *acts):
        server.will(act)
        try:
            told += repr(await model.complete(ASK))
        except AgentError as error:
            told += "".join(traceback.format_exception(error))
    assert "… is not welcome" in told
    assert all(SECRET in json.dumps(request.headers) for request in server.requests)
    shown = capfd.readouterr()
    assert SECRET not in f"{told}{caplog.text}{shown}"


async def test_no_server(client, new_model, server):
    model = new_model(client, url="http://127.0.0.1:9/v1")
    with pytest.raises(AgentError, match=r"no connection to 127\.0\.0\.1:9.*does its server run\?"):
        await model.complete(ASK)
    assert server.requests == []


async def test_cancelled_while_it_waits(client, new_model, server):
    server.will("stall")
    model = new_model(client)
    model.endpoint.idle_s = 60.0
    start = time.monotonic()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await model.complete(ASK)
    assert time.monotonic() - start < 2
    assert (await model.complete(ASK)).text == "Hello there."


async def test_half_a_character_does_not_stop_it(client, new_model, server):
    await new_model(client).complete((Message("user", "caf\u00e9 \ud800!"),))
    assert "caf\u00e9 ?!" in json.dumps(server.bodies[0], ensure_ascii=False)


def test_each_event_loop_has_its_own_connections(client, server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    model = create("chat_models", f"{client}:m@{server.url}/v1")

    async def ask() -> Usage:
        completion = await model.complete(ASK)
        await model.aclose()
        return completion.usage

    assert asyncio.run(ask()).calls == asyncio.run(ask()).calls == 1
