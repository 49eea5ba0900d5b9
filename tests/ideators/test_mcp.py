"""The MCP server as foreign agents meet it: the official client, real child processes."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from mle_ideator.cli import main

COMMAND = ["-m", "mle_ideator", "mcp"]
TOLD: dict[str, Any] = {
    "problem": "The score stalls.",
    "attempts": "Two models.",
    "goal": "A better score.",
    "task": "# House prices\nPredict y from x1..x9.",
    "metric": "rmse",
    "higher_is_better": False,
    "train_rows": 5000,
}
INITIALIZE = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-06-18", "capabilities": {},
    "clientInfo": {"name": "t", "version": "1"}}})  # fmt: skip
OWN = '''
"""An ideator that does what it is asked to do wrong."""
import asyncio, os, sys
from pathlib import Path

from mle_ideator.errors import AgentError
from mle_ideator.types import Idea, Proposal

print("printed when imported")
os.system("echo printed by a child")


class Moody:
    def __init__(self):
        self.waiting = 0
        self.both = asyncio.Event()
        print("printed when made")

    async def propose(self, state):
        print("printed when asked")
        match state.request.problem:
            case "break":
                raise ValueError("a bug\\nin two lines")
            case "lost":
                raise AgentError("its server is gone.")
            case "none":
                return Proposal(None, "nothing left")
            case "text":
                return "an idea"
            case "parts":
                return Proposal(Idea("Refine: x.", 7, "z"))
            case "half":
                return Proposal(Idea("Refine: half a \\ud83d", "Go on.", "It helps."))
            case "half lost":
                raise AgentError("half a \\ud83d")
            case "slow":
                Path("asked").touch()
                await asyncio.sleep(1)
            case "together":
                self.waiting += 1
                if self.waiting == 2:
                    self.both.set()
                await self.both.wait()
            case "for ever":
                Path("asked").touch()
                await asyncio.sleep(600)
        return Proposal(Idea("Revert to #1: it is better.", state.request.goal, "It helps."))

    async def aclose(self):
        Path("closed").touch()


class Terminal(Moody):
    uses_terminal = True
'''


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    (tmp_path / "own.py").write_text(OWN)
    return tmp_path


@asynccontextmanager
async def over_stdio(cwd: Path, spec: str, **mode: Any) -> AsyncIterator[Client]:
    command = StdioServerParameters(
        command=sys.executable, args=[*COMMAND, "--ideator", spec], cwd=cwd
    )
    async with Client(command, read_timeout_seconds=60, **mode) as client:
        yield client


@contextmanager
def child(cwd: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, *COMMAND, *arguments],
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def http_server(cwd: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    arguments = ("--transport", "http", "--port", "0", "--ideator", "own:Moody", *arguments)
    with child(cwd, *arguments) as process:
        lines = iter(process.stderr.readline, b"")
        line = next(line for line in lines if b"answers at" in line)
        yield process, line.decode().split()[-1]


@pytest.fixture
def refused(cwd: Path, monkeypatch, capfd) -> Iterator[Callable[..., str]]:
    """What a call that is wrong says on stderr."""

    def call(*arguments: str) -> str:
        with pytest.raises(SystemExit, match="2"):
            main(["mcp", *arguments])
        err = capfd.readouterr().err
        return err.splitlines()[-1]

    monkeypatch.chdir(cwd)
    yield call
    sys.modules.pop("own", None)


def text_of(result: Any) -> str:
    return "\n".join(part.text for part in result.content)


async def appears(file: Path) -> None:
    async with asyncio.timeout(60):
        while not file.exists():  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.02)


async def two_at_once(client: Client) -> list[str]:
    """Each of the two is answered only when the other one was asked, too."""
    calls = [
        client.call_tool("seek_help", {**TOLD, "problem": "together", "goal": goal})
        for goal in ("Use x1.", "Use x2.")
    ]
    results = await asyncio.gather(*calls)
    return [result.structured_content["idea"]["action"] for result in results]


# ------------------------------------------------------------------------------------ stdio


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_agent_gets_an_idea_of_the_offline_ideator(tmp_path, mode):
    history = [{"what": "ridge", "score": 0.9}, {"what": "gradient boosting", "score": 0.5}]
    async with over_stdio(tmp_path, "offline", mode=mode) as client:
        (tool,) = (await client.list_tools()).tools
        result = await client.call_tool(tool.name, {**TOLD, "history": history})
    assert tool.name == "seek_help"
    assert set(TOLD) == set(tool.input_schema["required"])
    assert "$ref" not in json.dumps(tool.input_schema)
    assert all("description" in field for field in tool.input_schema["properties"].values())
    assert not result.is_error
    idea = result.structured_content["idea"]
    assert "solution #2 with rmse 0.5 is the one to build on" in idea["analysis"]
    assert idea["action"] in text_of(result)


async def test_what_goes_wrong_is_a_tool_error_and_the_server_lives_on(cwd):
    """Whatever the ideator prints meanwhile, it does not reach the protocol."""
    async with over_stdio(cwd, "own:Moody") as client:

        async def ask(**changes: Any) -> Any:
            return await client.call_tool("seek_help", {**TOLD, **changes})

        for wrong, words in (
            ({"problem": "break"}, "the ideator broke (ValueError), go on by yourself."),
            ({"problem": "lost"}, "the ideator failed, go on by yourself: its server is gone."),
            ({"goal": " "}, "goal: it must not be empty."),
            ({"histroy": []}, "unknown argument 'histroy'; did you mean 'history'?"),
            ({"train_rows": None}, "missing: train_rows."),
            ({"problem": "text"}, "the ideator failed, go on by yourself: the ideator answered"),
            ({"problem": "parts"}, "the ideator failed, go on by yourself: the ideator answered"),
        ):
            result = await ask(**wrong)
            assert result.is_error
            assert text_of(result).startswith(words)
            assert "\n" not in text_of(result)
            assert "a bug" not in text_of(result)
        assert "half a ?" in text_of(await ask(problem="half"))
        assert "half a \ufffd" in text_of(await ask(problem="half lost"))
        assert (await client.call_tool("seek_halp", TOLD)).is_error
        none = await ask(problem="none")
        assert not none.is_error
        assert text_of(none) == "No idea came: nothing left. Go on by yourself."
        assert none.structured_content == {
            "idea": None,
            "reverts_to": None,
            "reason": "nothing left",
        }
        back = await ask(goal="Use x3.", history=[{"what": "the linear one", "score": 1}])
        assert back.structured_content["reverts_to"] == 1
        assert text_of(back).endswith('go back to #1, your attempt "the linear one".')
        assert await two_at_once(client) == ["Use x1.", "Use x2."]


def test_stdout_carries_the_protocol_only_and_eof_ends_it(cwd):
    with child(cwd, "--ideator", "own:Moody") as process:
        out, err = process.communicate(INITIALIZE.encode() + b"\nno json\n", timeout=60)
    assert process.returncode == 0
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in out.splitlines())
    assert json.loads(out.splitlines()[0])["result"]["serverInfo"]["name"] == "mle-ideator"
    for words in (b"when imported", b"by a child", b"when made"):
        assert b"printed " + words in err
    assert (cwd / "closed").exists()


async def test_half_characters_of_an_agent_are_replaced_and_answered(cwd):
    told = {**TOLD, "goal": "\\ud83d \ud83d \U0001f600"}
    call = json.dumps({"jsonrpc": "2.0", "id": "\ud800", "method": "tools/call", "params": {
        "name": "seek_help", "arguments": told}})  # fmt: skip
    with child(cwd, "--ideator", "own:Moody") as process:
        for message in (INITIALIZE, call):
            process.stdin.write(message.encode() + b"\n")
            process.stdin.flush()
            line = await asyncio.wait_for(asyncio.to_thread(process.stdout.readline), 30)
    action = json.loads(line)["result"]["structuredContent"]["idea"]["action"]
    assert action == "\\ud83d \ufffd \U0001f600"
    with http_server(cwd) as (_, url):
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
        }
        answer = httpx2.post(url, content=call, headers=headers)
    assert answer.status_code == 200
    assert "\\\\ud83d \ufffd \U0001f600" in answer.text


async def test_a_signal_ends_it_in_order_though_stdin_is_open(cwd):
    with child(cwd, "--ideator", "own:Moody") as process:
        call = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        process.stdin.write(json.dumps(call).encode() + b"\n")
        process.stdin.flush()
        await asyncio.to_thread(process.stdout.readline)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 10) == 0
    assert (cwd / "closed").exists()


def test_wrong_calls_say_what_to_mend(refused):
    assert "did you mean 'offline'?" in refused("--ideator", "offlin")
    assert "takes no options" in refused("--ideator", "offline", "--set", "x=1")
    assert "reads the terminal" in refused("--ideator", "own:Terminal")
    beyond = ("--transport", "http", "--host", "0.0.0.0")
    assert "a token is needed" in refused("--ideator", "null", *beyond)


def test_a_missing_package_is_named(refused, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert "pip install 'mle-ideator[mcp]'" in refused("--ideator", "offline")


# ------------------------------------------------------------------------------------- HTTP


async def test_over_http_the_token_is_needed_and_calls_run_side_by_side(cwd):
    token = cwd / "token"
    token.write_text("s3cret\n")
    with http_server(cwd, "--token-file", str(token)) as (_, url):
        async with (
            httpx2.AsyncClient(headers={"authorization": "Bearer s3cret"}) as known,
            Client(streamable_http_client(url, http_client=known)) as client,
        ):
            assert await two_at_once(client) == ["Use x1.", "Use x2."]
        for wrong in ({}, {"authorization": "Bearer guess"}, {"authorization": "s3cret"}):
            answer = httpx2.post(url, json={}, headers=wrong)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"


async def test_over_http_nothing_is_kept_and_a_proxys_name_works_with_the_token(cwd):
    token = cwd / "token"
    token.write_text("s3cret\n")
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "seek_help", "arguments": {**TOLD, "goal": "Use x1."}}}  # fmt: skip
    headers = {
        "accept": "application/json, text/event-stream",
        "authorization": "Bearer s3cret",
        "host": "ideas.example",
        "origin": "https://ideas.example",
    }
    with http_server(cwd, "--token-file", str(token)) as (_, url):
        answer = httpx2.post(url, json=call, headers=headers)
        assert answer.status_code == 200
        assert "Use x1." in answer.text
        assert "mcp-session-id" not in answer.headers
        for method in ("GET", "DELETE"):
            assert httpx2.request(method, url, headers=headers).status_code == 405
        assert httpx2.post(f"{url}/", json=call, headers=headers).status_code == 404


async def test_over_http_clients_are_bounded(cwd, monkeypatch):
    bounds = (
        "import mle_ideator.ideators.serving.body as body\n"
        "import mle_ideator.ideators.serving.connections as connections\n"
        "import mle_ideator.ideators.mcp_server.over_http as over_http\n"
        "body.SLOWEST_S, connections.IDLE_S, over_http.MOST_CALLS = 0.5, 0.5, 1\n"
    )
    (cwd / "sitecustomize.py").write_text(bounds)
    monkeypatch.setenv("PYTHONPATH", str(cwd))
    with http_server(cwd) as (process, url):
        port = int(url.split(":")[-1].removesuffix("/mcp"))
        head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        assert await said_to(port, "") == ""
        assert "408 " in await said_to(port, f"{head}Content-Length: 9\r\n\r\n{{")
        assert "413 " in await said_to(port, f"{head}Content-Length: 5000000\r\n\r\n")
        assert "400 " in await said_to(port, "GARBAGE\r\n\r\n")
        async with Client(url, mode="legacy") as client:
            first = asyncio.create_task(client.call_tool("seek_help", TOLD | {"problem": "slow"}))
            await appears(cwd / "asked")
            answer = httpx2.post(url, json={})
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "busy")
            assert int(answer.headers["retry-after"]) >= 1
            assert not (await first).is_error
        process.send_signal(signal.SIGTERM)
        _, err = await asyncio.to_thread(process.communicate)
    assert b"Invalid HTTP request" not in err


async def said_to(port: int, opening: str) -> str:
    """All that a server says to a client that sends this and no more, until it hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(opening.encode())
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    return answer.decode()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_sigterm_lets_a_call_in_flight_finish(cwd, mode):
    with http_server(cwd) as (process, url):
        async with Client(url, mode=mode) as client:
            await client.list_tools()
            call = asyncio.create_task(client.call_tool("seek_help", {**TOLD, "problem": "slow"}))
            await appears(cwd / "asked")
            start = time.monotonic()
            process.send_signal(signal.SIGTERM)
            assert not (await call).is_error
            assert await asyncio.to_thread(process.wait, 10) == 0
            assert time.monotonic() - start < 8
    assert (cwd / "closed").exists()


async def test_a_killed_server_is_an_error_at_once(cwd):
    with http_server(cwd) as (process, url):
        async with Client(url, mode="legacy", read_timeout_seconds=60) as client:
            call = asyncio.create_task(
                client.call_tool("seek_help", {**TOLD, "problem": "for ever"})
            )
            await appears(cwd / "asked")
            start = time.monotonic()
            process.kill()
            with pytest.raises(MCPError):
                await call
            assert time.monotonic() - start < 15


def test_without_a_token_only_this_machine_by_its_own_name_gets_in(cwd, refused):
    with http_server(cwd) as (_, url):
        for headers in ({"host": "evil.example"}, {"origin": "http://evil.example"}):
            answer = httpx2.post(
                url, json={}, headers={"accept": "application/json, text/event-stream", **headers}
            )
            assert answer.status_code in (403, 421)
        port = url.split(":")[-1].removesuffix("/mcp")
        taken = refused("--ideator", "null", "--transport", "http", "--port", port)
        assert f"can not listen on 127.0.0.1 port {port}" in taken
