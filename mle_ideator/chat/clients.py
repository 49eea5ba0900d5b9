"""What all models behind an HTTP API have in common."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import Any

import httpx2

from mle_ideator.chat.calls import CallFailed
from mle_ideator.chat.failures import Failure, failure_of, failure_told
from mle_ideator.chat.prices import Price
from mle_ideator.chat.specs import Address, Key
from mle_ideator.errors import UsageError
from mle_ideator.messages import CallOptions, Completion, Message

IDLE_S = 300.0
"""A server may be silent so long: some think for minutes before the first word."""

_SECRET_CHARS = 8
"""Shorter keys are placeholders, and parts of words."""

_UNREADABLE = (ValueError, TypeError, AttributeError, LookupError)
"""What reading an answer raises that is not of the form it should have."""

_PROXIES = ("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY")


@cache
def tls() -> ssl.SSLContext:
    """One for all clients: reading the certificates takes as long as everything else of one."""
    return httpx2.create_ssl_context()


def check_environment() -> None:
    """Raise `UsageError` if environment variables ask for what clients can not do."""
    try:
        context = tls()
    except OSError as error:
        raise UsageError(f"the file in SSL_CERT_FILE can not be read: {error}.") from error
    try:
        httpx2.AsyncClient(verify=context)
    except ImportError as error:
        raise UsageError(
            f"a SOCKS proxy ({_proxies()}) needs another package: run pip install socksio."
        ) from error
    except (ValueError, httpx2.InvalidURL):
        # Proxies can have passwords, which the error would show.
        raise UsageError(f"{_proxies()}: there is no such kind of proxy.") from None


def _proxies() -> str:
    """The variables that name proxies here."""
    return ", ".join(name for name in sorted(os.environ) if name.upper() in _PROXIES)


class Reading:
    """Whether an answer has begun to come: from then on it may be charged for."""

    began = False


class HttpEndpoint(ABC):
    """One model behind an official client. What it learns of the model, it keeps."""

    def __init__(self, address: Address, key: Key, price: Price | None) -> None:
        check_environment()
        self.name = address.name
        self.context_tokens: int | None = None
        self.price = price
        self._address = address
        self._key = key
        self.idle_s = IDLE_S
        self._longest_answer: int | None = None
        self._without: set[str] = set()
        """Words of requests that the server refused, and that have others in their place."""
        self._clients: dict[asyncio.AbstractEventLoop, Any] = {}

    async def send(self, messages: Sequence[Message], options: CallOptions) -> Completion:
        """One try. Raises `CallFailed`."""
        reading = Reading()
        try:
            completion = await self._answer(messages, options, reading)
        except CallFailed:
            raise
        except (self._sdk_error(), httpx2.HTTPError, *_UNREADABLE) as error:
            if isinstance(error, _UNREADABLE) and not reading.began:
                raise
            failure = failure_of(
                error, host=self._address.host, key=str(self._key), began=reading.began
            )
            # A server may have written the key into its answer.
            raise self._learnt(failure) from (None if self._shows_key(error) else error)
        if (
            not completion.text.strip()
            and not completion.calls
            and completion.finish_reason == "stop"
        ):
            raise CallFailed("broken", "the answer was empty", billed=True, usage=completion.usage)
        return completion

    async def aclose(self) -> None:
        """Close the running event loop's connections."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    # ------------------------------------------------------------------- what each API does

    @abstractmethod
    def _new_client(self) -> Any:
        """The official client, which retries nothing itself."""

    @abstractmethod
    def _sdk_error(self) -> type[Exception]:
        """The base of the official client's exceptions."""

    @abstractmethod
    async def _answer(
        self, messages: Sequence[Message], options: CallOptions, reading: Reading
    ) -> Completion: ...

    def _says_otherwise(self, word: str) -> bool:
        """Can what a refused word says be said in another way, from now on?"""
        if word == "stream":
            self._without.add(word)
        return word == "stream"

    # ----------------------------------------------------------------------------- for them

    def _timeout(self) -> httpx2.Timeout:
        return httpx2.Timeout(self.idle_s, connect=min(10.0, self.idle_s), pool=None)

    def _streaming(self) -> dict[str, Any]:
        """What a request says of streaming. The client always takes a stream for the answer; where
        none may come, nothing comes before the whole answer is written."""
        if "stream" not in self._without:
            return {"stream": True, "extra_body": {}}
        patient = httpx2.Timeout(None, connect=10.0)
        return {"stream": True, "extra_body": {"stream": False}, "timeout": patient}

    def _client(self) -> Any:
        """The client of the running event loop: connections can not move between loops."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            for ended in [other for other in self._clients if other.is_closed()]:
                del self._clients[ended]
            self._clients[loop] = self._new_client()
        return self._clients[loop]

    async def _whole(self, response: httpx2.Response) -> dict[str, Any] | None:
        """The answer of a server that does not stream; `None` if a stream comes."""
        if "event-stream" in response.headers.get("content-type", ""):
            return None
        said = (await response.aread()).lstrip()
        if not said.startswith((b"{", b"[")):
            return None
        body = json.loads(said)
        if isinstance(body, dict) and not body.get("error"):
            return body
        failure = failure_told(body, host=self._address.host, key=str(self._key))
        raise self._learnt(failure)

    def _limit(self, options: CallOptions) -> int:
        longest = self._longest_answer
        return options.max_tokens if longest is None else min(longest, options.max_tokens)

    def _shows_key(self, error: Exception) -> bool:
        return len(self._key.value) >= _SECRET_CHARS and self._key.value in repr(error)

    def _learnt(self, failure: Failure) -> Failure:
        """Keep what a failure says of the model, and see whether to ask in another way."""
        if self._shows_key(failure):
            failure.args = (str(failure).replace(self._key.value, "…"),)
        self.context_tokens = failure.context_tokens or self.context_tokens
        if failure.longest_answer:
            self._longest_answer = failure.longest_answer
            failure.kind = "adapted"
        elif failure.word is not None and self._says_otherwise(failure.word):
            failure.kind = "adapted"
        return failure
