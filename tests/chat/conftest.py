"""The misbehaving server, and the clients of HTTP APIs that talk to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from mle_ideator.chat.calls import Patience, PatientModel
from mle_ideator.registry import create
from tests.chat.misbehaving import MisbehavingServer

SECRET = "sk-secret-1234567890"
QUICK = Patience(tries=4, time_s=20.0, first_wait_s=0.01)
IDLE_S = 1.0
CLIENTS = ("openai", "openai-responses", "anthropic", "vllm")

NewModel = Callable[..., PatientModel]


@pytest.fixture(scope="session")
def running_server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer() as running:
        yield running


@pytest.fixture
def server(running_server: MisbehavingServer) -> MisbehavingServer:
    """It has seen no request, and will answer well."""
    running_server.forget()
    return running_server


@pytest.fixture
async def new_model(
    server: MisbehavingServer, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[NewModel]:
    """Makes models of the server, by client and model name; they do not wait long."""
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "VLLM_API_KEY"):
        monkeypatch.setenv(variable, SECRET)
    made: list[PatientModel] = []

    def new(
        client: str, model: str = "m", patience: Patience = QUICK, url: str = ""
    ) -> PatientModel:
        made.append(create("chat_models", f"{client}:{model}@{url or server.url + '/v1'}"))
        made[-1].patience = patience
        made[-1].endpoint.idle_s = IDLE_S
        return made[-1]

    yield new
    for model in made:
        await model.aclose()
