"""The chat route, by OpenAI's own client."""

from __future__ import annotations

import json

import openai
import pytest

from mle_ideator.errors import ContextOverflow
from mle_ideator.messages import Message
from mle_ideator.registry import create
from tests.ideators.serving.conftest import JSON, Server

ASKED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What now?"}]
REPLIES = [
    {
        "text": "Use ratios.",
        "reasoning": "They divide.",
        "usage": {
            "input_tokens": 90,
            "cached_tokens": 60,
            "output_tokens": 12,
            "reasoning_tokens": 4,
        },
    },
    {"text": "", "calls": [{"name": "look", "arguments": {"at": "train.csv"}, "id": "c1"}]},
    {"text": "cut", "finish_reason": "length"},
    {"error": "overflow"},
    {"error": "broken"},
    {"text": "no", "finish_reason": "refused"},
]


@pytest.fixture
def served(start, tmp_path):
    """A served model that plays `REPLIES`, and clients of it."""
    script = tmp_path / "replies.json"
    script.write_text(json.dumps(REPLIES))
    return start("--ideator", f"prompted:scripted:{script}")


@pytest.fixture(scope="module")
def chatty(tmp_path_factory):
    """One server for all that only look."""
    folder = tmp_path_factory.mktemp("chatty")
    (folder / "replies.json").write_text(json.dumps(["a text"]))
    server = Server(folder, "--ideator", f"prompted:scripted:{folder / 'replies.json'}")
    yield server
    server.close()


def openais(server) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        base_url=f"{server.url}/v1", api_key="none", max_retries=0, http_client=server.client()
    )


async def test_every_kind_of_reply_arrives_as_openai_would_send_it(served):
    async with openais(served) as client:

        async def ask():
            return await client.chat.completions.create(model="any", messages=ASKED)

        text = await ask()
        assert text.choices[0].message.content == "Use ratios."
        assert text.choices[0].message.reasoning_content == "They divide."
        assert text.choices[0].finish_reason == "stop"
        assert text.usage.prompt_tokens == 90
        assert text.usage.prompt_tokens_details.cached_tokens == 60
        assert text.usage.completion_tokens_details.reasoning_tokens == 4
        call = (await ask()).choices[0]
        assert call.finish_reason == "tool_calls"
        assert call.message.tool_calls[0].id == "c1"
        assert json.loads(call.message.tool_calls[0].function.arguments) == {"at": "train.csv"}
        assert (await ask()).choices[0].finish_reason == "length"
        with pytest.raises(openai.BadRequestError) as overflow:
            await ask()
        assert overflow.value.code == "context_length_exceeded"
        with pytest.raises(openai.InternalServerError, match="broken"):
            await ask()
        assert (await ask()).choices[0].finish_reason == "content_filter"
    seen = await served.metrics()
    assert seen["mle_ideator_tokens_total reasoning"] == 4
    assert seen["mle_ideator_requests_total completion /v1/chat/completions"] == 4


async def test_our_own_client_understands_it(served):
    model = create("chat_models", f"openai:any@{served.url}/v1")
    messages = [Message("system", "Be brief."), Message("user", "What now?")]
    try:
        first, second, third = [await model.complete(messages) for _ in range(3)]
        with pytest.raises(ContextOverflow):
            await model.complete(messages)
    finally:
        await model.aclose()
    assert (first.text, first.reasoning) == ("Use ratios.", "They divide.")
    assert (first.usage.cached_tokens, first.usage.reasoning_tokens) == (60, 4)
    assert second.calls[0].name == "look"
    assert third.finish_reason == "length"


async def test_a_streamed_reply_is_the_same(served):
    async with openais(served) as client:
        seen = []
        for _ in range(2):
            stream = await client.chat.completions.create(
                model="any",
                messages=ASKED,
                stream=True,
                stream_options={"include_usage": True},
            )
            seen.append([chunk async for chunk in stream])
    text, call = seen
    assert "".join(c.choices[0].delta.content or "" for c in text if c.choices) == "Use ratios."
    assert text[-2].choices[0].finish_reason == "stop"
    assert text[-1].usage.total_tokens == 102
    assert call[1].choices[0].delta.tool_calls[0].function.name == "look"
    assert call[-2].choices[0].finish_reason == "tool_calls"


async def test_conversations_with_parts_and_tools_are_read(served):
    messages = [
        {"role": "developer", "content": "Be brief."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "What"}, {"type": "text", "text": "?"}],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "nothing"},
    ]
    tool = {"name": "look", "description": "Look.", "parameters": {"type": "object"}}
    schema = {"name": "x", "schema": {"type": "object"}, "strict": True}
    async with openais(served) as client:
        answer = await client.chat.completions.create(
            model="any",
            messages=messages,
            tools=[{"type": "function", "function": tool}],
            response_format={"type": "json_schema", "json_schema": schema},
            max_completion_tokens=50,
            temperature=0.3,
            stop=["</action>"],
            seed=1,
            user="me",
        )
    assert answer.choices[0].message.content == "Use ratios."


@pytest.mark.parametrize(
    ("changes", "status", "says"),
    [
        ({"top_p": 0.5}, 400, "'top_p' is not supported"),
        ({"n": 2}, 400, "'n' is not supported"),
        ({"n": "two"}, 422, "$.n"),
        ({"tool_choice": "required"}, 400, "'tool_choice' is not supported"),
        ({"reasoning_effort": "minimal"}, 400, "'reasoning_effort' is not supported"),
        ({"messages": []}, 422, "empty"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, "image_url"),
        ({"messages": [{"role": "robot", "content": "x"}]}, 422, "$.messages[0].role"),
        ({"max_tokens": "many"}, 422, "$.max_tokens"),
        ({"max_tokens": 0}, 422, "$.max_tokens"),
        ({"max_completion_tokens": -1}, 422, "$.max_completion_tokens"),
        ({"temperature": -0.1}, 422, "$.temperature"),
        ({"temperature": 2.1}, 422, "$.temperature"),
        ({"response_format": {"type": "json_object"}}, 400, "json_object"),
        ({"response_format": {"type": "json_schema"}}, 422, "response_format.json_schema"),
    ],
)
async def test_what_can_not_be_heeded_is_refused_by_name(chatty, changes, status, says):
    async with chatty.client() as client:
        body = json.dumps({"model": "m", "messages": ASKED, **changes})
        reply = await client.post("/v1/chat/completions", content=body, headers=JSON)
    assert reply.status_code == status
    error = reply.json()["error"]
    assert says in error["message"]
    assert (error["code"] == "unsupported_parameter") == (status == 400)


@pytest.mark.parametrize("stream", [False, True])
async def test_what_is_no_text_in_a_completion_is_replaced(start, stream):
    server = start("--ideator", "served:Surrogates")
    body = json.dumps({"model": "m", "messages": ASKED, "stream": stream})
    async with server.client() as client:
        reply = await client.post("/v1/chat/completions", content=body, headers=JSON)
    assert reply.status_code == 200
    assert "half a ?" in reply.text


@pytest.mark.parametrize("deep", ['{"a":' * 50_000, "[" * 50_000])
async def test_a_bottomless_schema_is_refused(chatty, deep):
    head = '{"messages": [], "response_format": {"type": "json_schema", "json_schema": {"schema": '
    async with chatty.client() as client:
        reply = await client.post("/v1/chat/completions", content=head + deep, headers=JSON)
        assert reply.status_code == 422
        assert (await client.get("/health")).status_code == 200


async def test_the_model_is_listed(chatty):
    async with openais(chatty) as client:
        models = (await client.models.list()).data
    assert [model.id.partition(":")[0] for model in models] == ["scripted"]


async def test_a_prompted_ideator_has_ideas_too_and_its_tokens_are_counted(start, ask, tmp_path):
    script = tmp_path / "idea.json"
    text = "<analysis>Refine: x.</analysis><action>Do.</action><rationale>It helps.</rationale>"
    usage = {"input_tokens": 70, "output_tokens": 9}
    script.write_text(json.dumps([{"text": text, "usage": usage}]))
    server = start("--ideator", f"scripted:{script}", "--set", "temperature=0.5")
    async with server.client() as client:
        answer = (await ask(client)).json()
    assert answer["idea"]["action"] == "Do."
    assert (await server.metrics())["mle_ideator_tokens_total input"] == 70
