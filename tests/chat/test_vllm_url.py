"""`vllm:MODEL@URL`: servers of one's own."""

from __future__ import annotations

import pytest

from mle_ideator.errors import UsageError
from mle_ideator.messages import CallOptions, Message
from mle_ideator.registry import create

ASK = (Message("user", "Hello?"),)


async def test_it_costs_nothing(new_model, server):
    server.will("ok", "no_usage")
    model = new_model("vllm", model="gpt-5")
    assert model.priced
    for _ in range(2):
        usage = (await model.complete(ASK, CallOptions(max_cost_usd=0.001))).usage
        assert (usage.cost_usd, usage.at_most_usd) == (0.0, 0.0)


async def test_openai_s_key_does_not_go_there(new_model, server, monkeypatch):
    monkeypatch.delenv("VLLM_API_KEY")
    await new_model("vllm").complete(ASK)
    assert server.requests[-1].headers["authorization"] == "Bearer none"


async def test_its_own_key_does(new_model, server, monkeypatch):
    monkeypatch.setenv("VLLM_API_KEY", "own-key")
    await new_model("vllm").complete(ASK)
    assert server.requests[-1].headers["authorization"] == "Bearer own-key"


def test_a_model_is_needed():
    with pytest.raises(UsageError, match="names no model; write vllm:MODEL@URL"):
        create("chat_models", "vllm:@http://host:8000/v1")
