"""Why answers end, in the words of many servers: half a script must never pass for a whole one."""

from __future__ import annotations

import json

import pytest

from mle_ideator.chat.endings import finish_of
from mle_ideator.messages import CallOptions, Message
from tests.chat.conftest import CLIENTS
from tests.chat.dialects import Reply

ASK = (Message("user", "Hello?"),)


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", "stop"),
        ("STOP", "stop"),
        ("eos", "stop"),
        ("eos_token", "stop"),
        ("COMPLETE", "stop"),
        ("end_turn", "stop"),
        ("length", "length"),
        ("model_length", "length"),
        ("max_tokens", "length"),
        ("MAX_TOKENS", "length"),
        ("max_output_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "length"),
        ("incomplete", "length"),
        ("never heard of", "length"),
        ("content_filter", "refused"),
        ("SAFETY", "refused"),
    ],
)
def test_the_words(reason, finish):
    assert finish_of(reason, calls=False, output_tokens=5, most=10) == finish


@pytest.mark.parametrize(
    ("reason", "tokens", "calls", "finish"),
    [
        ("stop", 10, False, "length"),
        ("tool_calls", 10, True, "length"),
        ("content_filter", 10, False, "refused"),
        ("stop", 9, False, "stop"),
        ("stop", None, False, "stop"),
        ("stop", 9, True, "tool_calls"),
        ("function_call", 9, True, "tool_calls"),
    ],
)
def test_the_limit_and_the_calls(reason, tokens, calls, finish):
    assert finish_of(reason, calls=calls, output_tokens=tokens, most=10) == finish


@pytest.mark.parametrize("client", CLIENTS)
async def test_as_long_as_the_limit_is_cut_whatever_the_server_says(client, new_model, server):
    model = new_model(client)
    for most, finish in ((30, "length"), (31, "stop")):
        completion = await model.complete(ASK, CallOptions(max_tokens=most))
        assert completion.usage.output_tokens == 30
        assert completion.finish_reason == finish


@pytest.mark.parametrize(
    ("client", "word"), [("openai", "model_length"), ("vllm", "MAX_TOKENS"), ("anthropic", "odd")]
)
async def test_unusual_words_of_servers(client, word, new_model, server):
    async def act(exchange):
        await exchange.start(200, "text/event-stream")
        written = "".join(exchange.dialect.events(says_half))
        good = exchange.dialect.finish["length"]
        await exchange.write(written.replace(f'"{good}"', json.dumps(word)), more=False)

    says_half = Reply(text="rm -rf build/", finish="length")
    server.will(act)
    assert (await new_model(client).complete(ASK)).finish_reason == "length"


async def test_only_the_first_of_several_answers_counts(new_model, server):
    def chunk(index, text, finish=None):
        choice = {"index": index, "delta": {"content": text}, "finish_reason": finish}
        return f"data: {json.dumps({'choices': [choice]})}\n\n"

    async def act(exchange):
        await exchange.start(200, "text/event-stream")
        await exchange.write(chunk(1, "No", "length") + chunk(0, "Yes") + chunk(1, "no"))
        await exchange.write(chunk(0, ".", "stop") + chunk(1, "", "length"), more=False)

    server.will(act)
    completion = await new_model("openai").complete(ASK)
    assert (completion.text, completion.finish_reason) == ("Yes.", "stop")
