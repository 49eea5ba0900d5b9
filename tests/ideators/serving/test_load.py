"""Many clients, slow clients, clients that go away, and the end of a server."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections import Counter

import httpx2
import pytest

from mle_ideator.ideators.serving.admission import Places
from tests.ideators.serving.conftest import JSON, outcomes

HEAD = "POST /v1/ideas HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
SLOW = ("--ideator", "served:Echo", "--set")


async def until(condition, within_s: float = 5.0):
    """Wait until an async condition holds."""
    end = time.monotonic() + within_s
    while not await condition():
        assert time.monotonic() < end, "it did not come to that"
        await asyncio.sleep(0.02)


def in_flight(server, count: int, queued: int = 0):
    async def holds() -> bool:
        seen = await server.metrics()
        return (seen["mle_ideator_in_flight"], seen["mle_ideator_queued"]) == (count, queued)

    return holds


async def test_64_clients_at_once_are_all_answered(start, asking):
    server, body = start(*SLOW, "seconds=0.05"), asking()

    async def client() -> list[int]:
        async with server.client() as client:
            replies = [await client.post("/v1/ideas", content=body, headers=JSON) for _ in "123"]
        return [reply.status_code for reply in replies]

    statuses = await asyncio.gather(*(client() for _ in range(64)))
    assert Counter(status for each in statuses for status in each) == {200: 192}


async def test_what_finds_no_place_is_told_at_once_and_what_does_is_answered(start, ask):
    server = start(*SLOW, "seconds=1", "--concurrency", "2", "--queue", "3")
    begin, refused_after = time.monotonic(), []

    async def client() -> int:
        async with server.client() as client:
            reply = await ask(client)
        if reply.status_code == 503:
            refused_after.append(time.monotonic() - begin)
            assert 1 <= int(reply.headers["retry-after"]) <= 60
            assert reply.json()["error"]["code"] == "busy"
        return reply.status_code

    statuses = Counter(await asyncio.gather(*(client() for _ in range(20))))
    assert statuses == {200: 5, 503: 15}
    assert max(refused_after) < 1
    assert outcomes(await server.metrics()) == {"idea": 5, "busy": 15}


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


async def test_those_who_find_no_place_are_told_how_long_turns_take():
    clock = Clock()
    places = Places(concurrency=1, queue=1, deadline_s=60, now=clock)
    assert places.retry_after_s == 1
    with places.place(), places.place():
        async with places.turn():
            clock.seconds = 10
            assert places.retry_after_s == 20, "one has been at work for 10 s, and one waits"
        assert places.retry_after_s == 20, "the first turn counts whole"
    assert places.retry_after_s == 10
    with pytest.raises(asyncio.CancelledError):
        async with places.turn():
            raise asyncio.CancelledError
    assert places.retry_after_s == 10, "what was broken off tells nothing"


async def test_a_turn_that_does_not_come_in_time_is_refused(start, ask):
    server = start(*SLOW, "seconds=0.7", "--concurrency", "1", "--deadline", "0.3s")
    async with server.client() as client:
        replies = await asyncio.gather(*(ask(client) for _ in range(4)))
    codes = [reply.json().get("error", {}).get("code") for reply in replies]
    assert Counter(codes) == {None: 1, "late": 3}
    assert all("retry-after" in reply.headers for reply in replies if reply.status_code == 503)


async def test_a_client_that_goes_away_frees_its_place(start, ask):
    server = start(*SLOW, "seconds=30", "--concurrency", "1", "--queue", "1")
    async with server.client() as leaving:
        asks = [asyncio.create_task(ask(leaving)) for _ in range(2)]
        await until(in_flight(server, 1, 1))
        for task in asks:
            task.cancel()
        await until(in_flight(server, 0, 0))
    assert outcomes(await server.metrics()) == {"gone": 2}


async def test_slow_bodies_and_silent_connections_are_bounded_and_hold_nobody_up(start, ask):
    patience = (
        "import mle_ideator.ideators.serving.body as body\n"
        "import mle_ideator.ideators.serving.connections as connections\n"
        "body.SLOWEST_S, connections.IDLE_S = 1.0, 1.5"
    )
    server = start("--ideator", "served:Echo", "--concurrency", "1", code=patience)
    openings = {
        "slow": HEAD + "Content-Length: 1000\r\n\r\n{",
        "chunked": HEAD + "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
        "headers": HEAD,
        "silent": "",
    }
    ends = await asyncio.gather(
        *(_dripping(server.port, text) for text in openings.values()), _idea_meanwhile(server, ask)
    )
    answers = dict(zip(openings, ends, strict=False))
    assert "408 Request Timeout" in answers["slow"]
    assert "408 Request Timeout" in answers["chunked"]
    assert answers["headers"] == answers["silent"] == ""
    assert ends[-1] < 1


async def _dripping(port: int, opening: str) -> str:
    """What a server says to a client that sends a byte now and then, until it hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(opening.encode())
    answer = asyncio.create_task(reader.read())
    for _ in range(30):
        await asyncio.wait({answer}, timeout=0.2)
        if answer.done():
            break
        if opening and "chunked" not in opening:
            writer.write(b"x")
    writer.close()
    assert answer.done(), "the server did not hang up"
    return "" if answer.exception() else answer.result().decode()


async def _idea_meanwhile(server, ask) -> float:
    await asyncio.sleep(0.3)
    begin = time.monotonic()
    async with server.client() as client:
        assert (await ask(client)).status_code == 200
    return time.monotonic() - begin


# ------------------------------------------------------------------------------------ the end


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_at_the_end_what_was_accepted_is_answered_and_nobody_else(start, ask, number):
    server = start(*SLOW, "seconds=1.5", "--concurrency", "2", "--queue", "9")
    async with server.client() as before, server.client() as after:
        idle = await after.get("/health")
        accepted = [asyncio.create_task(ask(before)) for _ in range(4)]
        await until(in_flight(server, 2, 2))
        server.tell(number)
        await until(_draining(after))
        late = await ask(after)
        async with server.client() as newcomer:
            assert (await ask(newcomer)).status_code == 503
        assert "503 Service" in await _body_after_a_while(server.port)
        replies = await asyncio.gather(*accepted)
    assert idle.status_code == 200
    assert [reply.status_code for reply in replies] == [200] * 4
    assert (late.status_code, late.headers["connection"]) == (503, "close")
    assert "retry-after" in late.headers
    code, rest, log = await asyncio.to_thread(server.ended)
    assert (code, rest, log) == (0, "", "closed\n"), "stdout is for what was asked for"


async def _body_after_a_while(port: int) -> str:
    """The answer to a client that is still sending when it is refused."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{HEAD}Content-Length: 2\r\n\r\n".encode())
    await asyncio.sleep(0.2)
    writer.write(b"{}")
    answer = await reader.read()
    writer.close()
    return answer.decode()


def _draining(client):
    async def holds() -> bool:
        return (await client.get("/health")).json()["status"] == "draining"

    return holds


async def test_an_idle_server_ends_at_once_though_a_client_is_connected(start):
    server = start("--ideator", "vague")
    async with server.client() as client:
        await client.get("/health")
        server.tell()
        begin = time.monotonic()
        assert (await asyncio.to_thread(server.ended))[0] == 0
    assert time.monotonic() - begin < 2


async def test_what_takes_too_long_is_told_when_the_grace_is_over(start, ask):
    server = start(*SLOW, "seconds=60", "--grace", "0.4s")
    async with server.client() as client:
        asked = asyncio.create_task(ask(client))
        await until(in_flight(server, 1))
        server.tell()
        reply = await asked
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "stopped")
    code, _, log = await asyncio.to_thread(server.ended)
    assert code == 0
    assert "1 requests were not finished" in log


@pytest.mark.parametrize("ideator", ["Echo", "Blocking"])
async def test_the_second_signal_ends_a_server_at_once(start, ask, ideator):
    options = ("--set", "seconds=60") if ideator == "Echo" else ()
    server = start("--ideator", f"served:{ideator}", *options)
    async with server.client() as client:
        asked = asyncio.create_task(ask(client))
        await asyncio.sleep(0.5)
        server.tell()
        await asyncio.sleep(0.3)
        assert server.process.poll() is None
        server.tell()
        code, _, _ = await asyncio.to_thread(server.ended, 2.0)
        with pytest.raises(httpx2.RequestError):
            await asked
    assert code == -signal.SIGTERM


async def test_a_killed_server_takes_its_port_with_it(start, ask):
    first = start("--ideator", "served:Echo")
    first.tell(signal.SIGKILL)
    first.ended()
    again = start("--ideator", "served:Echo", "--port", str(first.port))
    async with again.client() as client:
        assert (await ask(client)).status_code == 200
    assert json.loads(json.dumps(again.told))["url"] == first.url
