"""The openai client and the prompted ideator against real servers with real weights (SmolLM2).

What 135 million parameters write is no measure of anything; that it comes back in the right shape
is.
"""

from __future__ import annotations

import asyncio
import json

import pytest

from mle_ideator.errors import ContextOverflow
from mle_ideator.idea_form import idea_schema, read_idea
from mle_ideator.implementers.offline import OfflineImplementer
from mle_ideator.limits import Limits
from mle_ideator.messages import CallOptions, Message
from mle_ideator.registry import create
from mle_ideator.types import SeekHelp
from tests.weights import CONTEXT, llama_server

pytest.importorskip("openai")

HELLO = (Message("system", "Answer with one word."), Message("user", "Say: hello"))
TELL = (Message("user", "Tell me of cats."),)
ADVICE = (
    Message("system", "You advise an engineer on machine learning."),
    Message("user", "Give one idea that improves a model of house prices, as JSON."),
)


@pytest.fixture(scope="module")
def server():
    with llama_server() as url:
        yield url


@pytest.fixture(params=["openai", "vllm"])
async def model(request, server):
    found = create("chat_models", f"{request.param}:smollm2@{server}")
    yield found
    await found.aclose()


# ----------------------------------------------------------------------------------- the client


async def test_a_text_with_its_usage(model):
    told = await model.complete(HELLO, CallOptions(max_tokens=60, temperature=0.0))
    assert "hello" in told.text.lower()
    assert told.finish_reason == "stop"
    assert told.usage.input_tokens == 22
    assert 2 < (told.usage.output_tokens or 0) < 60
    assert told.usage.waited_s > 0
    assert told.dropped == ()


async def test_a_reply_cut_at_the_limit_is_recognised(model):
    told = await model.complete(TELL, CallOptions(max_tokens=5))
    assert told.finish_reason == "length"
    assert told.usage.output_tokens == 5


async def test_a_stop_text_ends_the_reply_before_it(model):
    whole = (await model.complete(TELL, CallOptions(max_tokens=12, temperature=0.0))).text
    stop = whole.split()[3]
    options = CallOptions(max_tokens=12, temperature=0.0, stop=("nowhere", stop))
    told = await model.complete(TELL, options)
    assert told.finish_reason == "stop"
    assert told.text == whole[: whole.index(stop)]


async def test_what_does_not_fit_into_the_context_overflows(model):
    with pytest.raises(ContextOverflow):
        await model.complete([Message("user", "7 8 9 " * CONTEXT)], CallOptions(max_tokens=10))
    assert (await model.complete(HELLO, CallOptions(max_tokens=5))).text


async def test_the_context_is_learned_from_a_server_of_ones_own(server):
    model = create("chat_models", f"vllm:smollm2@{server}")
    await model.complete(HELLO, CallOptions(max_tokens=1))
    assert model.context_tokens == CONTEXT
    await model.aclose()


async def test_calls_at_once_are_answered_each(server):
    model = create("chat_models", f"vllm:smollm2@{server}")
    asked = [[Message("user", f"Say only the number {i}.")] for i in range(6)]
    told = await asyncio.gather(*(model.complete(m, CallOptions(max_tokens=4)) for m in asked))
    assert all(c.usage.output_tokens for c in told)
    await model.aclose()


async def test_under_a_schema_every_whole_answer_is_an_idea(server):
    """A small model may go round in circles within a text, so that the limit cuts it."""
    model = create("chat_models", f"vllm:smollm2@{server}")
    whole = 0
    for seed in range(4):
        told = await model.complete(
            ADVICE,
            CallOptions(
                max_tokens=250, temperature=0.8, seed=seed, json_schema=idea_schema((1, 2))
            ),
        )
        assert told.dropped == ()
        if told.finish_reason == "stop":
            whole += 1
            assert set(json.loads(told.text)) == {"analysis", "action", "rationale"}
            idea, wrong = read_idea(told.text)
            assert idea is not None, wrong
    assert whole
    await model.aclose()


# -------------------------------------------------------------------------------- the sessions


@pytest.mark.parametrize("form", [pytest.param("tags", marks=pytest.mark.slow), "json"])
async def test_a_session_with_a_real_model_as_ideator(server, play, form, record_property):
    options = {"form": form, "max_output_tokens": 160, "temperature": 0.8, "context_tokens": 2048}
    ideator = create("ideators", f"vllm:smollm2@{server}", options)
    few = Limits(steps=5, help_requests=1 if form == "json" else 3, time_s=600, step_time_s=60)
    record = await play(OfflineImplementer(), ideator, limits=few)
    await ideator.aclose()
    asked = [step for step in record.steps if isinstance(step.action, SeekHelp)]
    share = f"{len(record.ideas)} of {len(asked)} ideas are well-formed ({form})"
    record_property("well_formed", share)
    print(share)
    assert record.ended is not None
    assert record.ended.outcome in ("finished", "steps")
    assert record.solutions
    assert asked
    assert {step.observation.status for step in asked} <= {"idea", "malformed_idea"}
    assert record.ideator_usage.calls >= len(asked)
    assert record.ideator_usage.output_tokens
