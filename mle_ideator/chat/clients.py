"""What all models behind an HTTP API have in common."""

from __future__ import annotations

import asyncio
import ssl
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import httpx2

from mle_ideator.chat.calls import CallFailed
from mle_ideator.chat.failures import Failure, failure_of
from mle_ideator.chat.prices import Price
from mle_ideator.chat.specs import Address, Key
from mle_ideator.messages import CallOptions, Completion, Message

IDLE_S = 300.0
"""A server may be silent so long: some think for minutes before the first word."""

_SECRET_CHARS = 8
"""Shorter keys are placeholders, and parts of words."""

_UNREADABLE = (ValueError, TypeError, AttributeError, LookupError)
"""What reading an answer raises that is not of the form it should have."""


@cache
def tls() -> ssl.SSLContext:
    """One for all clients: reading the certificates takes as long as everything else of one."""
    return httpx2.create_ssl_context()


class Reading:
    """Whether an answer has begun to come: from then on it may be charged for."""

    began = False


class HttpEndpoint(ABC):
    """One model behind an official client. What it learns of the model, it keeps."""

    def __init__(self, address: Address, key: Key, price: Price | None) -> None:
        self.name = address.name
        self.context_tokens: int | None = None
        self.price = price
        self._address = address
        self._key = key
        self.idle_s = IDLE_S
        self._longest_answer: int | None = None
        self._without: set[str] = set()
        """Words of requests that the server refused, and that have others in their place."""
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = WeakKeyDictionary()

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
        return False

    # ----------------------------------------------------------------------------- for them

    def _timeout(self) -> httpx2.Timeout:
        return httpx2.Timeout(self.idle_s, connect=min(10.0, self.idle_s), pool=None)

    def _client(self) -> Any:
        """The client of the running event loop: connections can not move between loops."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients[loop] = self._new_client()
        return self._clients[loop]

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
