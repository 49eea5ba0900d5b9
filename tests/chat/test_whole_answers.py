"""Servers that do not stream, whatever they are asked, and those that refuse to."""

from __future__ import annotations

import json

import pytest

from mle_ideator.errors import AgentError
from mle_ideator.messages import CallOptions, Message, Tool
from tests.chat.conftest import CLIENTS
from tests.chat.dialects import USAGE, ChatCompletions, Messages, Reply, Responses
from tests.chat.misbehaving import fails

ASK = (Message("system", "Be terse."), Message("user", "Hello?"))
TOOL = Tool("run", "Runs code.", {"type": "object"})


def whole(dialect):
    """An answer with a text, a thought and two calls without anything streamed."""
    arguments = [{"code": "1"}, {"code": "2"}]
    if isinstance(dialect, ChatCompletions):
        calls = [
            {"id": i, "type": "function", "function": {"name": "run", "arguments": json.dumps(a)}}
            for i, a in zip("ab", arguments, strict=True)
        ]
        message = {"role": "assistant", "content": "Hi.", "reasoning": "Hm.", "tool_calls": calls}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return {"object": "chat.completion", "choices": [choice], "usage": dialect._usage()}
    if isinstance(dialect, Responses):
        text = [{"type": "output_text", "text": "Hi.", "annotations": []}]
        output = [
            {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "Hm."}]},
            {"type": "message", "id": "m", "role": "assistant", "content": text},
            *(
                {"type": "function_call", "call_id": i, "name": "run", "arguments": json.dumps(a)}
                for i, a in zip("ab", arguments, strict=True)
            ),
        ]
        head = {"id": "resp_1", "object": "response", "status": "completed"}
        return {**head, "output": output, "usage": dialect._usage()}
    assert isinstance(dialect, Messages)
    content = [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "text", "text": "Hi."},
        *(
            {"type": "tool_use", "id": i, "name": "run", "input": a}
            for i, a in zip("ab", arguments, strict=True)
        ),
    ]
    usage = {"input_tokens": USAGE["input"], "output_tokens": USAGE["output"]}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "stop_reason": "tool_use"}
    return {**head, "content": content, "usage": usage}


async def does_not_stream(exchange):
    await exchange.start(200, "application/json")
    await exchange.write(json.dumps(whole(exchange.dialect)), more=False)


def says_json(body, kind="application/json"):
    async def act(exchange):
        await exchange.start(200, kind)
        await exchange.write(body if isinstance(body, str) else json.dumps(body), more=False)

    return act


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_whole_answer_is_read_where_a_stream_was_asked_for(client, new_model, server):
    server.will(does_not_stream)
    completion = await new_model(client).complete(ASK, CallOptions(tools=(TOOL,)))
    assert (completion.text, completion.reasoning) == ("Hi.", "Hm.")
    assert [(c.id, json.loads(c.arguments)) for c in completion.calls] == [
        ("a", {"code": "1"}),
        ("b", {"code": "2"}),
    ]
    assert completion.finish_reason == "tool_calls"
    assert (completion.usage.input_tokens, completion.usage.output_tokens) == (100, 30)
    assert len(server.requests) == 1


@pytest.mark.parametrize("client", CLIENTS)
async def test_streams_are_not_asked_for_where_they_are_refused(client, new_model, server):
    server.will(
        fails(400, "Your organization must be verified to stream this model."),
        does_not_stream,
        does_not_stream,
    )
    model = new_model(client)
    for _ in range(2):
        completion = await model.complete(ASK)
        assert completion.text == "Hi."
    assert [body["stream"] for body in server.bodies] == [True, False, False]
    assert "stream_options" not in server.bodies[-1]


async def test_a_stream_by_another_name_is_still_one(new_model, server):
    async def act(exchange):
        await exchange.start(200, "application/json")
        for event in exchange.dialect.events(Reply()):
            await exchange.write(event)
        await exchange.write("", more=False)

    server.will(act)
    assert (await new_model("openai").complete(ASK)).text == "Hello there."


@pytest.mark.parametrize("client", CLIENTS)
async def test_an_error_without_its_status_is_read_by_its_words(client, new_model, server):
    refusal = {"error": {"message": "temperature: Extra inputs are not permitted"}}
    server.will(says_json({"error": "the model is overloaded"}), says_json(refusal))
    completion = await new_model(client).complete(ASK, CallOptions(temperature=0.5))
    assert completion.text == "Hello there."
    assert "temperature" in completion.dropped
    assert completion.usage.calls == 1
    assert len(server.requests) == 3


async def test_json_that_is_no_answer_ends_the_call(new_model, server):
    server.will(says_json({"hello": "world"}))
    with pytest.raises(AgentError, match="is the URL right"):
        await new_model("openai").complete(ASK)
    assert len(server.requests) == 1


async def test_half_of_a_whole_answer_is_tried_again(new_model, server):
    server.will(says_json('{"choices": [{"mess'))
    assert (await new_model("openai").complete(ASK)).text == "Hello there."
