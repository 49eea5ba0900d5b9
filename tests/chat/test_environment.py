"""What the environment asks of clients: proxies, certificates; and event loops that come and go."""

from __future__ import annotations

import asyncio
import sys

import pytest

from mle_ideator.chat.clients import tls
from mle_ideator.errors import UsageError
from mle_ideator.registry import create
from tests.chat.conftest import CLIENTS


@pytest.fixture
def fresh_certificates():
    tls.cache_clear()
    yield
    tls.cache_clear()


def new(client):
    return create("chat_models", f"{client}:m@http://127.0.0.1:9/v1")


@pytest.mark.parametrize("client", CLIENTS)
def test_certificates_that_are_missing(client, monkeypatch, fresh_certificates):
    monkeypatch.setenv("SSL_CERT_FILE", "/no/such/file")
    with pytest.raises(UsageError, match="file in SSL_CERT_FILE"):
        new(client)


def test_certificates_that_are_none(tmp_path, monkeypatch, fresh_certificates):
    (tmp_path / "ca.pem").write_text("nonsense")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    with pytest.raises(UsageError, match="file in SSL_CERT_FILE"):
        new("openai")


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("variable", ["ALL_PROXY", "all_proxy"])
def test_a_socks_proxy_without_its_package(client, variable, monkeypatch):
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv(variable, "socks5://me:SECRET@127.0.0.1:9")
    with pytest.raises(UsageError, match=rf"{variable}.* pip install socksio") as caught:
        new(client)
    assert "SECRET" not in str(caught.value)


def test_a_proxy_that_is_none(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "gopher://me:SECRET@127.0.0.1:9")
    with pytest.raises(UsageError, match="HTTPS_PROXY") as caught:
        new("openai")
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("client", CLIENTS)
def test_clients_of_closed_loops_are_let_go(client, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key")
    endpoint = new(client).endpoint

    async def ask():
        endpoint._client().loop = asyncio.get_running_loop()  # as its connections hold it
        return endpoint._client() is endpoint._client()

    for _ in range(3):
        assert asyncio.run(ask())
    assert len(endpoint._clients) == 1
