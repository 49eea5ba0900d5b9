"""What is particular to OpenAI's two APIs and to servers that speak Chat Completions."""

from __future__ import annotations

import json
import sys

import pytest

from mle_ideator.chat.prices import OVERRIDE, price_of
from mle_ideator.errors import AgentError, UsageError
from mle_ideator.messages import CallOptions, Message, Tool
from mle_ideator.registry import create
from tests.chat.misbehaving import fails, says

ASK = (Message("user", "Hello?"),)
TOOL = Tool("run", "Runs code.", {"type": "object"})
MILLION = 1_000_000


def chat(server):
    return server.bodies[-1]["messages"]


# ------------------------------------------------------------------------------ keys, addresses


@pytest.mark.parametrize("client", ["openai", "openai-responses"])
def test_a_missing_key_is_told_at_once(client, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(UsageError, match=r"needs an API key: export OPENAI_API_KEY=… first\."):
        create("chat_models", f"{client}:gpt-5")


async def test_a_server_of_one_s_own_needs_no_key(new_model, server, monkeypatch):
    for variable in ("OPENAI_API_KEY", "VLLM_API_KEY"):
        monkeypatch.delenv(variable)
    await new_model("openai").complete(ASK)
    assert server.requests[-1].headers["authorization"] == "Bearer none"


async def test_a_missing_key_that_was_needed_is_named(new_model, server, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    server.will("wrong_key")
    with pytest.raises(AgentError, match=r"no key .OPENAI_API_KEY is unset. was refused"):
        await new_model("openai").complete(ASK)


async def test_hosts_can_have_keys_of_their_own(new_model, server, monkeypatch):
    host = server.url.removeprefix("http://").replace(".", "_").replace(":", "_")
    monkeypatch.setenv(f"MLE_IDEATOR_KEY_{host}", "own-key")
    await new_model("openai").complete(ASK)
    assert server.requests[-1].headers["authorization"] == "Bearer own-key"


def test_a_key_with_a_line_break_inside_is_told_without_it(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-one\nsk-two")
    with pytest.raises(UsageError, match="OPENAI_API_KEY holds characters") as caught:
        create("chat_models", "openai:gpt-5")
    assert "sk-" not in str(caught.value)


@pytest.mark.parametrize(
    ("client", "package"),
    [("openai", "openai"), ("openai-responses", "openai"), ("vllm", "openai"),
     ("anthropic", "anthropic")],
)  # fmt: skip
def test_a_missing_package_is_told_with_its_cure(client, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError, match=rf"run pip install 'mle-ideator\[{package}\]'"):
        create("chat_models", f"{client}:m@http://127.0.0.1:9/v1")


@pytest.mark.parametrize("client", ["openai", "openai-responses"])
async def test_the_base_url_of_the_environment(client, server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "a-key\n")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1/")
    model = create("chat_models", f"{client}:m")
    assert (await model.complete(ASK)).text == "Hello there."
    assert model.name == f"{client}:m"
    assert server.requests[-1].headers["authorization"] == "Bearer a-key"
    await model.aclose()


@pytest.mark.parametrize(
    "argument",
    ["m@http://", "m@http://host:99999/v1", "@http://host/v1", "m@http://me:secret@host/v1"],
)
def test_bad_specs(argument):
    with pytest.raises(UsageError) as caught:
        create("chat_models", f"vllm:{argument}")
    assert "secret" not in str(caught.value)


async def test_a_model_s_name_may_hold_an_at_sign(new_model, server):
    await new_model("openai", model="org/m@v2").complete(ASK)
    assert server.bodies[-1]["model"] == "org/m@v2"


# ------------------------------------------------------------------------------------ asking


async def test_all_options_of_chat_completions(new_model, server):
    schema = {"type": "object", "additionalProperties": False}
    options = CallOptions(
        max_tokens=500,
        temperature=0.0,
        effort="high",
        stop=("END",),
        seed=0,
        tools=(TOOL,),
        json_schema=schema,
    )
    await new_model("openai").complete(ASK, options)
    body = server.bodies[-1]
    assert body["max_tokens"] == 500
    assert body["temperature"] == 0.0
    assert body["reasoning_effort"] == "high"
    assert body["stop"] == ["END"]
    assert body["seed"] == 0
    assert body["tools"][0]["function"]["name"] == "run"
    assert body["response_format"]["json_schema"] == {
        "name": "answer",
        "schema": schema,
        "strict": True,
    }
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}


async def test_all_options_of_responses(new_model, server):
    options = CallOptions(
        max_tokens=500,
        temperature=0.5,
        effort="low",
        stop=("END",),
        seed=7,
        tools=(TOOL,),
        json_schema={"type": "object"},
    )
    completion = await new_model("openai-responses").complete(ASK, options)
    body = server.bodies[-1]
    assert body["max_output_tokens"] == 500
    assert body["reasoning"] == {"effort": "low", "summary": "auto"}
    assert body["tools"][0]["name"] == "run"
    assert body["text"]["format"]["type"] == "json_schema"
    assert body["store"] is False
    assert "stop" not in body
    assert completion.dropped == ("seed", "stop")


async def test_roles_take_turns(new_model, server):
    said = (
        Message("system", "Be terse."),
        Message("system", "Be kind."),
        Message("user", "One."),
        Message("user", "Two."),
        Message("assistant", "Three."),
        Message("assistant", "Four."),
        Message("system", "Five."),
        Message("user", "Six."),
    )
    await new_model("openai").complete(said)
    assert [(m["role"], m["content"]) for m in chat(server)] == [
        ("system", "Be terse.\n\nBe kind."),
        ("user", "One.\n\nTwo."),
        ("assistant", "Three.\n\nFour."),
        ("user", "Five.\n\nSix."),
    ]


async def test_a_template_without_system_messages(new_model, server):
    server.will(fails(400, "System role not supported"))
    model = new_model("vllm")
    for _ in range(2):
        await model.complete((Message("system", "Be terse."), *ASK))
        assert chat(server) == [{"role": "user", "content": "Be terse.\n\nHello?"}]
    assert len(server.requests) == 3


async def test_tool_results_stay_apart(new_model, server):
    server.will("call")
    model = new_model("openai")
    first = await model.complete(ASK, CallOptions(tools=(TOOL,)))
    said = (
        *ASK,
        Message("assistant", "", calls=first.calls),
        Message("tool", "2", call_id="call_7"),
        Message("tool", "3", call_id="call_8"),
    )
    await model.complete(said, CallOptions(tools=(TOOL,)))
    called, first_result, second_result = chat(server)[1:]
    assert called["tool_calls"][0]["function"] == {"name": "run", "arguments": '{"code": "1 + 1"}'}
    assert first_result == {"role": "tool", "tool_call_id": "call_7", "content": "2"}
    assert second_result["tool_call_id"] == "call_8"


# ---------------------------------------------------------------------------------- adapting


@pytest.mark.parametrize(
    ("words", "first", "second"),
    [
        ("Unsupported parameter: 'max_tokens' is not supported with this model. Use "
         "'max_completion_tokens' instead.", "max_tokens", "max_completion_tokens"),
    ],
)  # fmt: skip
async def test_the_other_name_of_the_limit(new_model, server, words, first, second):
    server.will(fails(400, words))
    model = new_model("openai")
    for _ in range(2):
        completion = await model.complete(ASK, CallOptions(max_tokens=77))
        assert completion.dropped == ()
    assert [body.get(first) for body in server.bodies] == [77, None, None]
    assert [body.get(second) for body in server.bodies] == [None, 77, 77]


async def test_neither_name_of_the_limit_is_a_clear_end(new_model, server):
    server.will(
        fails(400, "Unrecognized request argument supplied: max_tokens"),
        fails(400, "Unrecognized request argument supplied: max_completion_tokens"),
    )
    with pytest.raises(AgentError, match="Unrecognized request argument"):
        await new_model("openai").complete(ASK)
    assert len(server.requests) == 2


async def test_the_longest_answer_is_learnt(new_model, server):
    server.will(
        fails(400, "max_tokens is too large: 8192. This model supports at most 4096 completion "
                   "tokens, whereas you provided 8192.")
    )  # fmt: skip
    model = new_model("openai")
    await model.complete(ASK)
    await model.complete(ASK, CallOptions(max_tokens=100))
    assert [body["max_tokens"] for body in server.bodies] == [8192, 4096, 100]


async def test_an_input_that_fits_beside_a_shorter_answer(new_model, server):
    server.will(
        fails(400, "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's "
                   "maximum context length is 2048 tokens and your request has 100 input tokens.")
    )  # fmt: skip
    model = new_model("vllm")
    assert (await model.complete(ASK)).text == "Hello there."
    assert [body["max_tokens"] for body in server.bodies] == [8192, 1024]
    assert model.context_tokens == 2048


async def test_usage_is_not_asked_for_where_that_is_refused(new_model, server):
    server.will(fails(400, "Unrecognized request argument supplied: stream_options"), "no_usage")
    completion = await new_model("openai").complete(ASK)
    assert completion.usage.input_tokens is None
    assert "stream_options" not in server.bodies[-1]


async def test_reasoning_goes_on_without_summaries(new_model, server):
    server.will(fails(400, "Your organization must be verified to generate reasoning summaries."))
    completion = await new_model("openai-responses").complete(ASK, CallOptions(effort="low"))
    assert server.bodies[-1]["reasoning"] == {"effort": "low"}
    assert completion.dropped == ()


# ----------------------------------------------------------------------------------- reading


@pytest.mark.parametrize(
    ("text", "reasoning", "answer"),
    [
        ("<think>\nHm.\n</think>\n\nYes.", "Hm.", "Yes."),
        ("Hm.\n</think>\n\nYes.", "Hm.", "Yes."),
        ("Yes: `<think>a</think>`.", "", "Yes: `<think>a</think>`."),
        ("Yes.", "", "Yes."),
    ],
)
async def test_thoughts_in_the_text_of_local_models(new_model, server, text, reasoning, answer):
    server.will(says(text=text))
    completion = await new_model("vllm").complete(ASK)
    assert (completion.reasoning, completion.text) == (reasoning, answer)


async def test_a_thought_cut_at_the_limit(new_model, server):
    server.will(says(text="<think>Hm, let me", finish="length"))
    completion = await new_model("vllm").complete(ASK)
    assert (completion.reasoning, completion.text) == ("Hm, let me", "")
    assert completion.finish_reason == "length"


def chunks(*deltas, finish="stop"):
    """A stream of such deltas, in the words of servers that differ from OpenAI's."""

    async def act(exchange):
        await exchange.start(200, "text/event-stream; charset=utf-8")
        choices = [{"index": 0, "delta": d, "finish_reason": None} for d in deltas]
        choices.append({"index": 0, "delta": {}, "finish_reason": finish})
        for choice in choices:
            await exchange.write(f": keep-alive\n\ndata: {json.dumps({'choices': [choice]})}\n\n")
        await exchange.write("data: [DONE]\n\n", more=False)

    return act


async def test_reasoning_by_another_name(new_model, server):
    server.will(chunks({"reasoning": "Hm."}, {"content": "Yes."}))
    completion = await new_model("openai").complete(ASK)
    assert (completion.reasoning, completion.text) == ("Hm.", "Yes.")


async def test_calls_that_are_all_numbered_zero(new_model, server):
    def call(identity, arguments):
        function = {"name": "run", "arguments": arguments}
        return {"tool_calls": [{"index": 0, "id": identity, "function": function}]}

    server.will(chunks(call("a", "{}"), call("b", '{"x": 1}'), finish="tool_calls"))
    calls = (await new_model("openai").complete(ASK)).calls
    assert [(c.id, c.arguments) for c in calls] == [("a", "{}"), ("b", '{"x": 1}')]


async def test_a_call_without_an_id_gets_one(new_model, server):
    call = {"index": 0, "function": {"name": "run", "arguments": "{}"}}
    server.will(chunks({"tool_calls": [call]}))
    completion = await new_model("openai").complete(ASK)
    assert completion.calls[0].id == "call_0"
    assert completion.finish_reason == "tool_calls"


async def test_a_server_that_gives_up(new_model, server):
    server.will(chunks({"content": "He"}, finish="abort"))
    completion = await new_model("vllm").complete(ASK)
    assert completion.text == "Hello there."
    assert len(server.requests) == 2


async def test_a_refusal_inside_the_stream(new_model, server):
    server.will(chunks({"refusal": "I can not."}))
    completion = await new_model("openai").complete(ASK)
    assert (completion.text, completion.finish_reason) == ("I can not.", "refused")


async def test_an_answer_as_long_as_the_limit_was_cut_whatever_the_server_says(new_model):
    completion = await new_model("openai-responses").complete(ASK, CallOptions(max_tokens=30))
    assert (completion.finish_reason, completion.usage.output_tokens) == ("length", 30)


# -------------------------------------------------------------------------------- cost, context


@pytest.mark.parametrize("client", ["openai", "openai-responses"])
async def test_cost(client, new_model, tmp_path, monkeypatch):
    """50 fresh, 40 cached and 10 written tokens in, 30 out."""
    own = tmp_path / "prices.yaml"
    own.write_text("as_of: x\nmodels: {m: {input: 10, cached: 1, written: 20, output: 100}}")
    monkeypatch.setenv(OVERRIDE, str(own))
    usage = (await new_model(client).complete(ASK)).usage
    assert usage.cost_usd * MILLION == pytest.approx(50 * 10 + 40 * 1 + 10 * 20 + 30 * 100)


def test_the_price_is_that_of_the_model(new_model):
    assert new_model("openai", model="gpt-5").endpoint.price == price_of("gpt-5")
    assert not new_model("openai", model="mine").priced


async def test_the_cap_is_kept_before_anything_is_sent(new_model, server):
    server.served = [{"id": "gpt-5", "object": "model"}]
    with pytest.raises(AgentError, match="it was not made"):
        await new_model("openai", model="gpt-5").complete(ASK, CallOptions(max_cost_usd=0.01))
    assert server.requests == []


@pytest.mark.parametrize(
    ("served", "size"),
    [
        ([{"id": "m", "max_model_len": 2048}], 2048),
        ([{"id": "x", "max_model_len": 1}, {"id": "m", "max_model_len": 2048}], 2048),
        ([{"id": "some.gguf", "meta": {"n_ctx": 4096, "n_ctx_train": 8192}}], 4096),
        ([{"id": "x", "max_model_len": 1}, {"id": "y", "max_model_len": 2}], None),
        ([{"id": "m", "meta": None}], None),
        ([], None),
        (None, None),
    ],
)
async def test_the_context_s_size_is_learnt_from_the_server(new_model, server, served, size):
    server.served = served
    model = new_model("vllm")
    await model.complete(ASK)
    assert model.context_tokens == size
    assert server.bodies[-1]["max_tokens"] == 8192


async def test_answers_fit_into_what_was_learnt(new_model, server):
    server.served = [{"id": "m", "max_model_len": 2048}]
    model = new_model("vllm")
    await model.complete(ASK)
    await model.complete(ASK)
    assert server.bodies[-1]["max_tokens"] == 1024
