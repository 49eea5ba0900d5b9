"""What a server answers, request by request."""

from __future__ import annotations

import asyncio
import json
import re

import jsonschema
import msgspec
import pytest

from mle_ideator.types import HelpState, Proposal
from tests.ideators.serving.conftest import JSON, TOKEN, outcomes
from tests.ideators.serving.served import fingerprint


async def test_a_help_state_arrives_as_it_was_and_the_idea_comes_back(guarded, state):
    async with guarded.client(TOKEN) as client:
        reply = await client.post("/v1/ideas", content=msgspec.json.encode(state), headers=JSON)
    proposal = msgspec.json.decode(reply.content, type=Proposal)
    assert reply.status_code == 200
    assert proposal.idea.action == fingerprint(state)
    assert proposal.usage.reasoning_tokens == 20


async def test_the_published_schemas_are_those_of_what_is_sent(guarded, state, ask):
    async with guarded.client(TOKEN) as client:
        published = (await client.get("/v1/schema")).json()
        answer = (await ask(client)).json()
    sent = json.loads(msgspec.json.encode(state))
    jsonschema.validate(sent, published["request"])
    jsonschema.validate(answer, published["answer"])
    del sent["situation"]["task"]["metric"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(sent, published["request"])


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer wrong",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Basic {TOKEN}",
        TOKEN,
        "Bearer ünïcode",
    ],
)
async def test_without_the_token_nothing_is_told(guarded, header, asking):
    headers = JSON if header is None else {**JSON, "authorization": header.encode()}
    async with guarded.client() as client:
        replies = [
            await client.post("/v1/ideas", content=asking(), headers=headers),
            await client.post("/v1/chat/completions", content=b"{}", headers=headers),
            *[await client.get(page, headers=headers) for page in ("/metrics", "/v1/schema")],
        ]
        health = await client.get("/health", headers=headers)
    assert [reply.status_code for reply in replies] == [401] * 4
    assert all(reply.headers["www-authenticate"] == "Bearer" for reply in replies)
    assert not any("mle-ideator-version" in reply.headers for reply in replies)
    assert health.json() == {"status": "ok"}


async def test_health_tells_those_who_may_ask_what_is_served(guarded):
    async with guarded.client(TOKEN) as client:
        health = (await client.get("/health")).json()
    assert health["status"] == "ok"
    assert health["ideator"] == "served:Echo"
    assert re.fullmatch(r"\d+\.\d+.*", health["version"])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: "", "truncated"),
        (lambda text: text[:-5], "truncated"),
        (lambda text: "[" * 100_000, "object"),
        (lambda text: text.replace('"goal":', '"gaol":'), "gaol"),
        (lambda text: text.replace('"seed":0', '"seed":"x"'), "$.situation.seed"),
        (lambda text: text.replace('"seed":0', '"seed":1e999'), "range"),
        (lambda text: text.replace("ä", "\udce4"), "utf-8"),
        (lambda text: "null", "HelpState|object"),
    ],
)
async def test_what_can_not_be_read_is_refused_with_the_place(guarded, asking, change, says):
    body = change(asking().decode()).encode(errors="surrogateescape")
    async with guarded.client(TOKEN) as client:
        reply = await client.post("/v1/ideas", content=body, headers=JSON)
    assert reply.status_code == 422
    message = reply.json()["error"]["message"]
    assert re.search(re.escape(says).replace(r"\|", "|"), message, re.IGNORECASE), message
    assert "\n" not in message


@pytest.mark.parametrize("headers", [{}, {"content-type": "text/plain"}])
async def test_what_a_foreign_web_page_can_send_is_refused(guarded, asking, headers):
    async with guarded.client(TOKEN) as client:
        reply = await client.post("/v1/ideas", content=asking(), headers=headers)
    assert reply.status_code == 415


async def test_a_compressed_request_is_refused(guarded, asking):
    headers = {**JSON, "content-encoding": "gzip"}
    async with guarded.client(TOKEN) as client:
        reply = await client.post("/v1/ideas", content=asking(), headers=headers)
    assert reply.status_code == 415


@pytest.mark.parametrize("size", [600_000, 30_000_000])
@pytest.mark.parametrize("declared", [True, False])
async def test_a_huge_request_is_refused_whether_it_says_its_size_or_not(guarded, size, declared):
    async def chunks():
        for _ in range(size // 10_000):
            yield b" " * 10_000

    content = b" " * size if declared else chunks()
    async with guarded.client(TOKEN) as client:
        reply = await client.post("/v1/ideas", content=content, headers=JSON)
        assert reply.status_code == 413
        assert "0.5 MiB" in reply.json()["error"]["message"]
        assert (await client.get("/health")).status_code == 200


@pytest.mark.parametrize(
    ("problem", "status", "code", "says"),
    [
        ("agent", 502, "agent_failed", "the model's server is gone."),
        ("overflow", 400, "context_length_exceeded", "90,000 tokens"),
        ("money", 402, "out_of_budget", "$1 is left"),
        ("bug", 500, "internal", "KeyError"),
    ],
)
async def test_what_goes_wrong_is_told_in_one_line(guarded, ask, problem, status, code, says):
    async with guarded.client(TOKEN) as client:
        reply = await ask(client, problem)
        assert (await ask(client)).status_code == 200
    error = reply.json()["error"]
    assert (reply.status_code, error["code"]) == (status, code)
    assert says in error["message"]
    assert "\n" not in error["message"]
    assert "secret_of_the_server" not in reply.text
    if problem == "bug":
        assert "secret_of_the_server" in guarded.log.read_text()


@pytest.mark.parametrize(
    ("problem", "status", "says"),
    [
        ("", 200, "Refine: half a ?"),
        ("agent", 502, "half a \ufffd"),
        ("text", 502, "answered with str, not with a Proposal"),
        ("parts", 502, "no right Proposal: Expected `str`, got `int` - at `$.idea.action`"),
    ],
)
async def test_an_answer_that_is_none_is_told_and_one_that_is_no_utf8_is_mended(
    start, ask, problem, status, says
):
    server = start("--ideator", "served:Surrogates")
    async with server.client() as client:
        reply = await ask(client, problem)
        assert (reply.status_code, says in reply.text) == (status, True), reply.text
        assert (await client.get("/health")).status_code == 200


async def test_a_slash_too_many_is_no_redirect(guarded, asking):
    async with guarded.client(TOKEN) as client:
        reply = await client.post("/v1/ideas/", content=asking(), headers=JSON)
    assert reply.status_code == 404


async def test_two_tokens_are_none(guarded, asking):
    headers = [(b"content-type", b"application/json")]
    headers += [(b"authorization", f"Bearer {token}".encode()) for token in (TOKEN, "other")]
    async with guarded.client() as client:
        reply = await client.post("/v1/ideas", content=asking(), headers=headers)
    assert reply.status_code == 401


async def test_broken_requests_leave_nothing_in_the_log(start):
    server = start("--ideator", "served:Echo")
    for _ in range(3):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GARBAGE\r\n\r\n")
        assert b"400" in await reader.read()
        writer.close()
    async with server.client() as client:
        assert (await client.get("/health")).status_code == 200
    assert server.log.read_text() == ""


async def test_other_routes_say_what_there_is(guarded):
    async with guarded.client(TOKEN) as client:
        nowhere, wrong = await client.get("/v1/idea"), await client.get("/v1/ideas")
        chat = await client.post("/v1/chat/completions", content=b"{}", headers=JSON)
    assert (nowhere.status_code, wrong.status_code, chat.status_code) == (404, 405, 404)
    assert wrong.headers["allow"] == "POST"
    assert "/v1/ideas" in nowhere.json()["error"]["message"]
    assert "no chat model" in chat.json()["error"]["message"]


async def test_metrics_count_what_came_of_requests_and_what_they_cost(start, ask):
    server = start("--ideator", "served:Echo")
    async with server.client() as client:
        for problem in ("", "", "nothing", "agent"):
            await ask(client, problem)
    seen = await server.metrics()
    requests = outcomes(seen)
    assert requests["idea"] == 2
    assert requests["no_idea"] == requests["agent_failed"] == 1
    assert seen["mle_ideator_answer_seconds_count /v1/ideas"] == 3
    assert seen["mle_ideator_tokens_total input"] == 2000
    assert seen["mle_ideator_tokens_total cached"] == 1200
    assert seen["mle_ideator_cost_usd_total"] == 0.5
    assert seen["mle_ideator_in_flight"] == seen["mle_ideator_queued"] == 0


async def test_without_a_token_a_name_from_outside_is_refused(start, asking):
    server = start("--ideator", "served:Echo")
    async with server.client() as client:
        for name, status in (
            ("evil.example", 421),
            ("localhost:1@evil.example", 421),
            ("[::1]evil.example", 421),
            ("[127.0.0.1]", 421),
            ("localhost:1", 200),
            ("[::1]:80", 200),
        ):
            headers = {**JSON, "host": name}
            reply = await client.post("/v1/ideas", content=asking(), headers=headers)
            assert reply.status_code == status


async def test_the_token_is_in_no_log(guarded, ask):
    async with guarded.client(TOKEN) as client:
        await asyncio.gather(*(ask(client, problem) for problem in ("bug", "agent")))
        metrics = (await client.get("/metrics")).text
    assert TOKEN not in guarded.log.read_text() + metrics + json.dumps(guarded.told)


async def test_a_recorded_session_of_every_kind_of_step_goes_through(guarded, play):
    """The states of a real session, each answered with the fingerprint of what arrived."""
    from tests.core.test_session import HELP, Plays, writes_and_runs

    states: list[HelpState] = []

    class Sends:
        async def propose(self, state):
            states.append(state)
            async with guarded.client(TOKEN) as client:
                body = msgspec.json.encode(state)
                reply = await client.post("/v1/ideas", content=body, headers=JSON)
            return msgspec.json.decode(reply.content, type=Proposal)

    actions = (writes_and_runs(1), HELP, "print('\\x1b[1m\\u2028é' + chr(0xD800))", "1 / 0", HELP)
    record = await play(Plays(*actions), Sends())
    ideas = [step.idea for step in record.steps if step.idea]
    assert [idea.action for idea in ideas] == [fingerprint(state) for state in states]
    assert len(ideas) == 2
