"""The remote ideator against servers that misbehave, and against ours."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import time
import warnings
from email.utils import formatdate

import msgspec
import pytest

from mle_ideator.chat.clients import tls as certificates
from mle_ideator.errors import AgentError, ContextOverflow, OutOfBudget, UsageError
from mle_ideator.ideators.remote import RemoteIdeator, RemoteOptions
from mle_ideator.ideators.remote.breaker import Breaker
from mle_ideator.ideators.remote.ideator import _CERTIFICATES as CERTIFICATES
from mle_ideator.ideators.remote.ideator import _PROXIES as PROXIES
from mle_ideator.ideators.remote.replies import Down
from mle_ideator.ideators.serving.schema import SCHEMA_HEADER, VERSION_HEADER
from mle_ideator.registry import create
from mle_ideator.types import HelpState, Idea, Proposal, Usage
from tests.ideators.serving.conftest import TOKEN
from tests.ideators.serving.served import fingerprint

IDEA = Proposal(Idea("Refine: go on.", "Use ratios.", "They help."))
GOOD = (200, {}, msgspec.json.encode(IDEA))
CUT, SILENT, HUGE = "cut", "silent", "huge"


def error(message: str, code: str = "x") -> bytes:
    return json.dumps({"error": {"message": message, "code": code}}).encode()


class Misbehaves:
    """An HTTP server on loopback that plays answers in order, the last one again and again."""

    def __init__(self, *answers) -> None:
        self.answers = list(answers)
        self.heard: list[tuple[str, dict[str, str], bytes]] = []
        self._at_work: set[asyncio.Task] = set()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for task in self._at_work:
            task.cancel()
        await asyncio.gather(*self._at_work, return_exceptions=True)

    async def _serve(self, reader, writer):
        self._at_work.add(asyncio.current_task())
        with contextlib.closing(writer), contextlib.suppress(ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.strip().split("\r\n")
            headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}
            body = await reader.readexactly(int(headers["content-length"]))
            answer = self.answers[min(len(self.heard), len(self.answers) - 1)]
            self.heard.append((first, headers, body))
            await self._answer(writer, answer)

    async def _answer(self, writer, answer):
        if answer == SILENT:
            await asyncio.sleep(30)
        if answer == CUT:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{")
        elif answer == HUGE:
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 5 * 2**20)
        else:
            status, headers, body = answer
            headers = {"content-length": len(body), "connection": "close", **headers}
            head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            writer.write(f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + body)
        await writer.drain()


@pytest.fixture
def failing(state):
    """Ask servers that answer so; the error, and how often they were asked."""

    async def failing(*answers, **options):
        async with Misbehaves(*answers) as server:
            with pytest.raises(AgentError) as caught:
                await RemoteIdeator(server.url, RemoteOptions(**options)).propose(state)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 500
        return caught.value, len(server.heard)

    return failing


# ------------------------------------------------------------------------------- what is sent


async def test_it_sends_the_state_without_paths_and_the_token(state, monkeypatch):
    monkeypatch.setenv("MY_TOKEN", TOKEN)
    task = msgspec.structs.replace(state.situation.task, inputs="/home/me", masked=("/data",))
    situation = msgspec.structs.replace(state.situation, task=task)
    async with Misbehaves(GOOD) as server:
        ideator = RemoteIdeator(f"{server.url}/team/a/", RemoteOptions(token_env="MY_TOKEN"))
        proposal = await ideator.propose(HelpState(situation, state.request))
    (first, headers, body), *more = server.heard
    assert first == "POST /team/a/v1/ideas HTTP/1.1"
    assert headers["authorization"] == f"Bearer {TOKEN}"
    bare = msgspec.structs.replace(task, inputs="", masked=())
    assert msgspec.json.decode(body, type=HelpState).situation.task == bare
    assert b"/home/me" not in body
    assert proposal.idea == IDEA.idea
    assert not more


async def test_without_a_token_none_is_sent_and_no_proxy_is_asked(state, monkeypatch):
    monkeypatch.delenv("MLE_IDEATOR_TOKEN", raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with Misbehaves(GOOD) as server:
        await RemoteIdeator(server.url).propose(state)
    assert "authorization" not in server.heard[0][1]


async def test_ours_understands_it(guarded, state, monkeypatch):
    monkeypatch.setenv("MLE_IDEATOR_TOKEN", TOKEN)
    proposal = await create("ideators", guarded.url, {"tries": 1}).propose(state)
    task = msgspec.structs.replace(state.situation.task, inputs="")
    situation = msgspec.structs.replace(state.situation, task=task)
    assert proposal.idea.action == fingerprint(HelpState(situation, state.request))
    assert proposal.usage.cost_usd == 0.25
    assert 0 < proposal.usage.waited_s < 20


# -------------------------------------------------------------------------- what passes by itself


@pytest.mark.parametrize(
    ("bad", "at_least_s", "usage_known"),
    [
        ((503, {"retry-after": "1"}, b""), 1.0, True),
        ((429, {"retry-after": "1"}, b"{}"), 1.0, True),
        ((503, {"retry-after": formatdate(usegmt=True)}, b""), 0.0, True),
        ((503, {"retry-after": "soon"}, b""), 0.25, True),
        ((500, {}, error("a bug")), 0.25, False),
        ((502, {}, b"<html>Bad Gateway</html>"), 0.25, False),
        (CUT, 0.25, False),
    ],
)
async def test_what_passes_by_itself_is_tried_again(state, bad, at_least_s, usage_known):
    begin = time.monotonic()
    async with Misbehaves(bad, GOOD) as server:
        proposal = await RemoteIdeator(server.url).propose(state)
    assert proposal.idea == IDEA.idea
    assert len(server.heard) == 2
    assert time.monotonic() - begin >= at_least_s
    assert (proposal.usage.cost_usd is not None) == usage_known


async def test_it_does_not_wait_longer_than_it_may(failing):
    begin = time.monotonic()
    told, asked = await failing((503, {"retry-after": "60"}, error("busy")), timeout_s=5)
    assert time.monotonic() - begin < 3
    assert asked == 1
    assert "was busy once: busy" in str(told)
    assert not isinstance(told, Down)
    assert told.usage == Usage()


async def test_it_keeps_to_the_time_that_the_session_has_left(state):
    """A third of it: the session has to go on without help, too."""
    remaining = msgspec.structs.replace(state.situation.remaining, seconds=3)
    situation = msgspec.structs.replace(state.situation, remaining=remaining)
    begin = time.monotonic()
    async with Misbehaves(SILENT) as server:
        with pytest.raises(Down, match="did not answer within 1 s"):
            await RemoteIdeator(server.url).propose(HelpState(situation, state.request))
    assert time.monotonic() - begin < 2


async def test_a_busy_server_is_waited_for_however_often_it_says_so(state):
    busy = (503, {"retry-after": "0"}, b"")
    begin = time.monotonic()
    async with Misbehaves(busy, (429, {}, b""), busy, GOOD) as server:
        proposal = await RemoteIdeator(server.url, RemoteOptions(tries=1)).propose(state)
    assert proposal.idea == IDEA.idea
    assert len(server.heard) == 4
    assert time.monotonic() - begin > 0.25 + 0.5 + 1, "a server that says 0 is not hammered"


async def test_a_busy_server_is_not_gone(state):
    async with Misbehaves((503, {"retry-after": "60"}, b"")) as server:
        ideator = RemoteIdeator(server.url, RemoteOptions(timeout_s=5))
        for _ in range(5):
            with pytest.raises(AgentError, match="was busy once"):
                await ideator.propose(state)
    assert len(server.heard) == 5


async def test_tries_are_counted(failing):
    told, asked = await failing((500, {}, error("still\nbroken")), tries=2)
    assert asked == 2
    assert "failed 2 times, the last time: still broken" in str(told)


async def test_a_port_where_nobody_listens_is_told(state):
    async with Misbehaves(GOOD) as server:
        pass
    with pytest.raises(AgentError, match="can not be reached"):
        await RemoteIdeator(server.url, RemoteOptions(tries=1)).propose(state)


# ----------------------------------------------------------------------------- what does not pass


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        ((401, {}, b""), AgentError, "wants a token: set MLE_IDEATOR_TOKEN"),
        ((404, {}, b"<html>"), AgentError, "hosts no ideator"),
        ((308, {"location": "https://elsewhere/\x1b"}, b""), AgentError, "https://elsewhere/␛"),
        ((413, {}, error("larger than 16 MiB")), AgentError, "larger than 16 MiB"),
        ((400, {}, error("too long", "context_length_exceeded")), ContextOverflow, "too long"),
        ((402, {}, error("$1 is left", "out_of_budget")), OutOfBudget, "left"),
        ((301, {"location": "http://elsewhere/"}, b""), AgentError, "to http://elsewhere/"),
        ((422, {}, error("Expected `int`")), AgentError, "Expected `int`"),
        ((422, {SCHEMA_HEADER: "x", VERSION_HEADER: "9.9"}, b""), AgentError, "mle-ideator 9.9"),
        ((200, {}, b"<html>Welcome</html>"), Down, "no proposal"),
        ((200, {}, b'{"idea": 1}'), Down, "$.idea"),
        ((200, {}, b'{"idea": null, "mood": 1}'), Down, "mood"),
        ((200, {SCHEMA_HEADER: "x"}, b'{"idea": null, "mood": 1}'), Down, "same version"),
        ((200, {}, b"[" * 100_000), Down, "no proposal"),
        ((200, {}, b""), Down, "no proposal"),
        (HUGE, Down, "more than 4 MiB"),
    ],
)
async def test_what_does_not_pass_is_told_at_once(failing, monkeypatch, answer, kind, says):
    monkeypatch.delenv("MLE_IDEATOR_TOKEN", raising=False)
    told, asked = await failing(answer)
    assert type(told) is kind
    assert says in str(told)
    assert asked == 1


LONG = "x" * 4001


@pytest.mark.parametrize(
    ("idea", "says"),
    [
        (Idea("Do it.", "Use ratios.", "They help."), "not in form"),
        (Idea("Refine: x.", " ", "They help."), "not in form"),
        (Idea("Refine: x.", LONG, "They help."), "4000 characters"),
        (Idea("Revert to #77: x.", "Use ratios.", "They help."), "there is no solution #77"),
    ],
)
async def test_an_idea_that_is_none_counts_as_malformed(state, idea, says):
    usage = Usage(1, 10, 0, 5, 0, 0.5, 0.5)
    answer = (200, {}, msgspec.json.encode(Proposal(idea, usage=usage)))
    async with Misbehaves(answer) as server:
        proposal = await RemoteIdeator(server.url).propose(state)
    assert (proposal.idea, proposal.malformed) == (None, True)
    assert says in proposal.reason
    assert proposal.usage.cost_usd == 0.5


@pytest.mark.parametrize("name", Usage.__struct_fields__)
async def test_a_server_can_not_give_money_back(state, name):
    told = json.loads(msgspec.json.encode(IDEA))
    told["usage"][name] = -1
    async with Misbehaves((200, {}, json.dumps(told).encode())) as server:
        with pytest.raises(Down, match="usage"):
            await RemoteIdeator(server.url).propose(state)


async def test_a_reason_is_told_in_a_line_without_terminal_codes(state):
    answer = (200, {}, msgspec.json.encode(Proposal(None, "no\n\x1b[2J" + LONG)))
    async with Misbehaves(answer) as server:
        proposal = await RemoteIdeator(server.url).propose(state)
    assert proposal.reason.startswith("no ␛[2J")
    assert len(proposal.reason) == 300


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HTTPS_PROXY", "foo://bar"),
        ("https_proxy", "http://h:port"),
        ("ALL_PROXY", "foo://bar"),
        ("SSL_CERT_FILE", "/no/such/file"),
    ],
)
def test_a_broken_environment_is_told_by_the_name_of_the_variable(monkeypatch, name, value):
    for known in (*PROXIES, *CERTIFICATES):
        monkeypatch.delenv(known, raising=False)
        monkeypatch.delenv(known.lower(), raising=False)
    monkeypatch.setenv(name, value)
    certificates.cache_clear()
    with pytest.raises(UsageError, match=f"^what {name} says can not be used: "):
        create("ideators", "https://example.org")


async def test_a_wrong_token_is_told_by_the_name_of_its_variable(guarded, state, monkeypatch):
    monkeypatch.setenv("MLE_IDEATOR_TOKEN", "wrong")
    with pytest.raises(AgentError, match="refuses the token in MLE_IDEATOR_TOKEN") as caught:
        await RemoteIdeator(guarded.url).propose(state)
    assert "wrong" not in str(caught.value)


@pytest.mark.parametrize(
    "spec",
    [
        "http:host:8100",
        "http://",
        "http:",
        "http",
        "https://h/?a=b",
        "http://u:p@h:1",
        "http://h:x",
    ],
)
def test_what_is_no_address_is_refused(spec):
    with pytest.raises(UsageError) as caught:
        create("ideators", spec)
    assert "u:p" not in str(caught.value)


def test_a_token_on_an_open_line_is_warned_of(monkeypatch, caplog):
    monkeypatch.setenv("MLE_IDEATOR_TOKEN", TOKEN)
    for spec in ("http://127.0.0.1:8100", "http://[::1]:8100", "https://example.org"):
        create("ideators", spec)
    assert caplog.text == ""
    create("ideators", "http://example.org:8100")
    assert "example.org unencrypted" in caplog.text
    assert TOKEN not in caplog.text


def test_a_token_that_can_not_be_sent_is_refused(monkeypatch):
    monkeypatch.setenv("MLE_IDEATOR_TOKEN", "a\nb")
    with pytest.raises(UsageError, match="plain ASCII"):
        create("ideators", "http://127.0.0.1:8100")


# -------------------------------------------------------------------------------- the breaker


async def test_a_server_that_is_gone_is_left_alone(state):
    async with Misbehaves((500, {}, error("broken"))) as server:
        ideator = RemoteIdeator(server.url, RemoteOptions(tries=1))
        for _ in range(3):
            with pytest.raises(Down):
                await ideator.propose(state)
        with pytest.raises(AgentError, match="3 times in a row and is not asked for another"):
            await ideator.propose(state)
    assert len(server.heard) == 3


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_a_breaker_lets_one_call_try_and_closes_when_that_works():
    clock = Clock()
    breaker = Breaker("it", failures=2, open_s=10, now=clock)
    for _ in range(2):
        _fails(breaker, Down("gone"))
    with pytest.raises(AgentError, match="for another 10 s"), breaker.call():
        pytest.fail("it was called")
    clock.seconds = 10
    with breaker.call(), pytest.raises(AgentError, match="while another"), breaker.call():
        pytest.fail("it was called twice")
    with breaker.call(), breaker.call():
        pass


def test_a_breaker_opens_again_when_the_try_fails():
    clock = Clock()
    breaker = Breaker("it", failures=2, open_s=10, now=clock)
    for seconds in (0, 1, 12):
        clock.seconds = seconds
        _fails(breaker, Down("gone"))
    clock.seconds = 21
    with pytest.raises(AgentError, match="for another 1 s"), breaker.call():
        pytest.fail("it was called")


def test_a_breaker_counts_only_what_says_that_the_server_is_gone():
    breaker = Breaker("it", failures=2)
    for error_ in (Down("gone"), AgentError("a wrong request"), Down("gone"), KeyError("mine")):
        _fails(breaker, error_)
    with breaker.call():
        pass


def test_a_cancelled_try_does_not_keep_a_breaker_open():
    clock = Clock()
    breaker = Breaker("it", failures=1, open_s=10, now=clock)
    _fails(breaker, Down("gone"))
    clock.seconds = 11
    _fails(breaker, asyncio.CancelledError())
    with breaker.call():
        pass


def _fails(breaker: Breaker, error: BaseException) -> None:
    with pytest.raises(type(error)), breaker.call():
        raise error


# ----------------------------------------------------------------------------------- sessions


def test_it_works_in_one_event_loop_after_another_and_leaves_nothing_open(guarded, state):
    ideator = RemoteIdeator(guarded.url)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MLE_IDEATOR_TOKEN", TOKEN)
            ideas = {asyncio.run(ideator.propose(state)).idea for _ in range(2)}
        gc.collect()
    assert len(ideas) == 1


async def test_a_session_goes_on_without_an_ideator_that_is_gone_and_with_one_that_is_back(
    play, start
):
    """Its server is killed after the first idea, and started again after the second request."""
    from tests.core.test_session import HELP, Plays

    servers = [start("--ideator", "served:Echo", "--set", "name=first")]

    class Meanwhile(Plays):
        async def act(self, situation):
            match len(situation.trajectory):
                case 2:
                    servers[0].process.kill()
                    servers[0].process.wait()
                case 4:
                    port = str(servers[0].port)
                    options = ("--set", "name=second", "--port", port)
                    servers.append(start("--ideator", "served:Echo", *options))
            return await super().act(situation)

    ideator = create("ideators", servers[0].url, {"tries": 1})
    agent = Meanwhile("1", HELP, HELP, "print('without help')", HELP)
    record = await play(agent, ideator)
    names = [step.idea and step.idea.rationale for step in record.steps[:5]]
    assert names == [None, "first", None, None, "second"]
    assert record.steps[2].observation.status == "told"
    assert "can not be reached" in record.steps[2].observation.text
    assert sum("goes on without help" in warning for warning in record.warnings) == 1
    assert "without help" in record.steps[3].observation.text
    assert record.ended.outcome == "finished"
