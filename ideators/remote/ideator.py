"""Asks a hosted ideator, again where that can help, and not for long where it can not.

A busy server (429, 503) is waited for, what else passes by itself (a lost connection, 5xx) is tried
again a few times, all within a share of the time that the session has left: it has to go on without
help, too. A server that stays away is left alone for a while, so that such a session does not wait
for it at each request.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Collection, Sequence
from typing import Annotated

import httpx2
import msgspec
from msgspec import Meta

from mle_ideator.chat.clients import tls
from mle_ideator.chat.retry_after import retry_after_s
from mle_ideator.errors import AgentError, ContextOverflow, OutOfBudget, UsageError
from mle_ideator.ideators.remote.breaker import Breaker
from mle_ideator.ideators.remote.replies import (
    Busy,
    Down,
    Reply,
    TryFailed,
    cut,
    line,
    read_proposal,
    send,
)
from mle_ideator.ideators.serving.addresses import is_loopback
from mle_ideator.journal import writable
from mle_ideator.types import UNKNOWN_USAGE, HelpState, Proposal, Usage, Value

log = logging.getLogger(__name__)

_CONNECT_S = 10.0
_SHARE = 1 / 3
"""One idea may take so much of the time that the session has left."""
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


class RemoteOptions(Value, frozen=True, kw_only=True):
    """How a hosted ideator is asked."""

    token_env: str = "MLE_IDEATOR_TOKEN"  # noqa: S105 (the name of a variable)
    """Environment variable with the server's token."""
    timeout_s: Annotated[float, Meta(gt=0)] = 600.0
    """Longest wait for an idea, all tries together; never over a third of the session's rest."""
    tries: Annotated[int, Meta(ge=1)] = 6
    """Most tries that fail; while the server is only busy, the time counts alone."""


_DEFAULTS = RemoteOptions()


class RemoteIdeator:
    """The ideator that a server hosts. Connections live as long as one request for an idea."""

    Options = RemoteOptions

    def __init__(self, url: str, options: RemoteOptions = _DEFAULTS) -> None:
        address = _address(url)
        self._url = url.rstrip("/")
        self._options = options
        self._local = is_loopback(address.host)
        self._tls = address.scheme == "https"
        self._breaker = Breaker(self._url)
        self._client()  # what is wrong with proxies and certificates is told now
        if self._token and not (self._tls or self._local):
            log.warning("the token goes to %s unencrypted; https keeps it secret.", address.host)

    async def propose(self, state: HelpState) -> Proposal:
        """Raises `AgentError` in one line when no answer can be had."""
        left = min(self._options.timeout_s, state.situation.remaining.seconds * _SHARE)
        start = time.monotonic()
        with self._breaker.call():
            try:
                async with asyncio.timeout(left):
                    proposal = await self._ask(state, start + left)
            except TimeoutError as error:
                raise Down(f"{self._url} did not answer within {left:.3g} s.") from error
        usage = msgspec.structs.replace(proposal.usage, waited_s=time.monotonic() - start)
        return msgspec.structs.replace(proposal, usage=usage)

    async def _ask(self, state: HelpState, end: float) -> Proposal:
        """The answer to the first try that brings one."""
        body = msgspec.json.encode(writable(_without_paths(state)))
        numbers = [solution.number for solution in state.situation.solutions]
        lost, failed, busy = Usage(), 0, 0
        async with self._client() as client:
            while True:
                try:
                    reply = await send(client, f"{self._url}/v1/ideas", body)
                    proposal = self._read(reply, numbers)
                except Busy as failure:
                    busy += 1
                    wait = failure.wait_s(busy)
                    if time.monotonic() + wait > end:
                        told = f"{self._url} was busy {_times(busy)}: {failure}"
                        raise _gave_up(AgentError(told), lost) from failure
                except TryFailed as failure:
                    failed += 1
                    lost += failure.used
                    wait = failure.wait_s(failed)
                    if failed >= self._options.tries or time.monotonic() + wait > end:
                        told = f"{self._url} failed {_times(failed)}: {failure}"
                        raise _gave_up(Down(told), lost) from failure
                else:
                    return msgspec.structs.replace(proposal, usage=proposal.usage + lost)
                await asyncio.sleep(wait)

    def _read(self, reply: Reply, numbers: Collection[int]) -> Proposal:
        """The proposal; raises `TryFailed` for what may pass, `AgentError` for what does not."""
        if reply.status == 200:
            try:
                return read_proposal(reply.content, numbers)
            except (msgspec.DecodeError, RecursionError) as error:
                why = reply.misunderstanding or f"{line(error)}."
                raise Down(f"{self._url} answered with no proposal: {why}") from error
        if reply.status in (429, 503):
            raise Busy(reply.says, retry_after_s=retry_after_s(reply.headers))
        if reply.status >= 500:
            raise TryFailed(reply.says, used=UNKNOWN_USAGE)
        raise self._refusal(reply)

    def _refusal(self, reply: Reply) -> AgentError:
        """What asking again does not change."""
        match reply.status, reply.code:
            case 400, "context_length_exceeded":
                return ContextOverflow(f"{self._url}: {reply.says}")
            case 402, _:
                return OutOfBudget(f"{self._url}: {reply.says}")
            case ((401 | 403), _):
                name = self._options.token_env
                what = (
                    f"refuses the token in {name}" if self._token else f"wants a token: set {name}"
                )
                return AgentError(f"{self._url} {what}.")
            case ((301 | 302 | 303 | 307 | 308), _):
                where = cut(reply.headers.get("location", "nowhere"))
                return AgentError(f"{self._url} redirects to {where}; name its address itself.")
            case ((404 | 405), _):
                return AgentError(f"{self._url} hosts no ideator (HTTP {reply.status}).")
            case 422, _:
                return AgentError(f"{self._url}: {reply.misunderstanding or reply.says}")
        return AgentError(f"{self._url}: {reply.says}")

    @property
    def _token(self) -> str:
        token = os.environ.get(self._options.token_env, "").strip()
        if not (token.isascii() and token.isprintable()):
            raise UsageError(f"{self._options.token_env} holds no token: it must be plain ASCII.")
        return token

    def _client(self) -> httpx2.AsyncClient:
        headers = {"content-type": "application/json", "accept-encoding": "identity"}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        try:
            certificates = tls() if self._tls else False
        except OSError as error:  # of which one of TLS is a kind
            raise _wrong_environment(_CERTIFICATES, error) from error
        try:
            return httpx2.AsyncClient(
                headers=headers,
                timeout=httpx2.Timeout(None, connect=_CONNECT_S),
                trust_env=not self._local,  # a proxy does not know this machine's own ports
                verify=certificates,
            )
        except (httpx2.InvalidURL, ValueError, ImportError) as error:
            raise _wrong_environment(_PROXIES, error) from error


def over_http(argument: str, options: RemoteOptions = _DEFAULTS) -> RemoteIdeator:
    """The ideator at `http:` and what stands after it: `//host:8100`."""
    return RemoteIdeator(f"http:{argument}", options)


def over_https(argument: str, options: RemoteOptions = _DEFAULTS) -> RemoteIdeator:
    """The ideator at `https:` and what stands after it."""
    return RemoteIdeator(f"https:{argument}", options)


for _factory in (over_http, over_https):
    _factory.Options = RemoteOptions  # type: ignore[attr-defined]


def _wrong_environment(names: Sequence[str], error: Exception) -> UsageError:
    """For what these variables, or their twins in lower case, say and nobody can use."""
    told = [name for both in names for name in (both, both.lower()) if os.environ.get(name)]
    return UsageError(f"what {' or '.join(told or names)} says can not be used: {line(error)}")


def _gave_up(error: AgentError, lost: Usage) -> AgentError:
    error.usage = lost
    return error


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times, the last time"


def _address(url: str) -> httpx2.URL:
    """Raises `UsageError`."""
    try:
        address = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise UsageError(f"{url!r} is no URL: {error}.") from error
    if not address.host or address.query or address.fragment:
        raise UsageError(f"{url!r} must be written http://host:8100 or https://host/prefix.")
    if address.userinfo:
        raise UsageError("a token does not belong in the URL; set MLE_IDEATOR_TOKEN instead.")
    return address


def _without_paths(state: HelpState) -> HelpState:
    """What lies where on this machine is nobody's business."""
    task = msgspec.structs.replace(state.situation.task, inputs="", masked=())
    situation = msgspec.structs.replace(state.situation, task=task)
    return msgspec.structs.replace(state, situation=situation)
