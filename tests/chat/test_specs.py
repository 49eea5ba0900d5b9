"""`MODEL` or `MODEL@URL`: what is a name, what an address, and what is neither."""

from __future__ import annotations

import pytest

from mle_ideator.chat.specs import Address
from mle_ideator.errors import UsageError
from mle_ideator.registry import create

CLIENTS = ("openai", "openai-responses", "anthropic", "vllm")
VARIABLES = {
    "openai": "OPENAI_BASE_URL",
    "openai-responses": "OPENAI_BASE_URL",
    "anthropic": "ANTHROPIC_BASE_URL",
}


def read(argument: str) -> Address:
    return Address("openai", argument, "https://default.example/v1")


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    "tail",
    [
        "localhost",
        "localhost:8000",
        "gpu-box:8000/v1",
        "gpu-box/v1",
        "10.0.0.7",
        "[::1]:8000/v1",
        "api.example.com",
        "ftp://host/v1",
        "FTP://host/v1",
        "http:/host/v1",
        "http:host",
        "http://",
        "HTTP://",
        "https://[::1",
        "http://host:99999/v1",
        "http://host:0/v1",
        "http://ho st/v1",
    ],
)
def test_an_address_that_is_no_url_is_told_with_the_right_form(client, tail, monkeypatch):
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(variable, "a-key")
    with pytest.raises(UsageError, match=r"no URL; write for instance http://localhost") as caught:
        create("chat_models", f"{client}:m@{tail}")
    assert f"{client}:m@" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        "claude@20250101",
        "m@v2",
        "org/m@v1.2",
        "m@latest",
        "llama@sha256:0123456789abcdef",
        "@cf/meta/llama",
    ],
)
def test_a_name_may_hold_an_at_sign(name):
    address = read(name)
    assert (address.model, address.host) == (name, "default.example")
    address = read(f"{name}@http://host:8000/v1")
    assert (address.model, address.host) == (name, "host:8000")


def test_schemes_are_read_in_any_case():
    address = read("m@HTTP://host:8000/v1/")
    assert (address.model, address.host) == ("m", "host:8000")


@pytest.mark.parametrize(
    "tail",
    [
        "http://me:SECRET@host/v1",
        "http://SECRET@host/v1",
        "ftp://me:SECRET@host/v1",
        "http://host/v1?api-key=SECRET",
        "http://host/v1#SECRET",
        "localhost:8000/v1?key=SECRET",
    ],
)
def test_no_secret_may_be_in_a_url_and_none_is_shown(tail):
    with pytest.raises(UsageError) as caught:
        read(f"m@{tail}")
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("client", VARIABLES)
@pytest.mark.parametrize("url", ["nonsense", "localhost:8000", "https://[::1", "http://h/?k=s"])
def test_a_bad_variable_is_named(client, url, monkeypatch):
    monkeypatch.setenv(VARIABLES[client], url)
    with pytest.raises(UsageError, match=f"^{VARIABLES[client]} "):
        create("chat_models", f"{client}:m")


def test_a_folder_with_an_at_sign_is_no_address(tmp_path, monkeypatch):
    """The model in this process is asked for, whether or not vLLM is installed."""
    folder = tmp_path / "runs@host" / "last"
    folder.mkdir(parents=True)
    with pytest.raises(UsageError) as caught:
        create("chat_models", f"vllm:{folder}")
    assert "no URL" not in str(caught.value)
