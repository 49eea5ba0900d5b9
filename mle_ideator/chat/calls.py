"""One call to a model, whoever serves it: keep the cap, try, drop what is refused, wait, retry."""

from __future__ import annotations

import asyncio
import math
import random
import string
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import msgspec

from mle_ideator.chat.prices import Price
from mle_ideator.errors import AgentError, ContextOverflow, OutOfBudget
from mle_ideator.messages import CallOptions, Completion, Message
from mle_ideator.types import UNKNOWN_USAGE, Usage, Value

Kind = Literal["busy", "broken", "refused_option", "adapted", "overflow", "wrong"]
"""What went wrong: only `busy` (429, overloaded) and `broken` (5xx, a lost connection, a cut
stream, rubbish, nothing at all) pass by themselves. After `adapted` the endpoint asks in another
way from now on, so that the call may be tried again at once."""

_NORMAL = CallOptions()


class CallFailed(Exception):
    """One try failed. Endpoints raise it, nobody else sees it."""

    def __init__(
        self,
        kind: Kind,
        message: str,
        *,
        retry_after_s: float | None = None,
        option: str | None = None,
        billed: bool = False,
        usage: Usage | None = None,
        passes_within_s: float = math.inf,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after_s = retry_after_s
        self.option = option
        """The field of `CallOptions` that is refused."""
        self.billed = billed
        """May the provider charge for it all the same (a stream that broke)?"""
        self.usage = usage
        """What a billed try used, if the provider told it."""
        self.passes_within_s = passes_within_s
        """Seconds of the call after which it is not worth another try."""


class Endpoint(Protocol):
    """One model behind one API."""

    name: str
    context_tokens: int | None
    price: Price | None

    async def send(self, messages: Sequence[Message], options: CallOptions) -> Completion:
        """One try, of which nothing is retried. Raises `CallFailed`."""
        ...

    async def aclose(self) -> None: ...


class Patience(Value, frozen=True, kw_only=True):
    """How long to keep trying."""

    tries: int = 8
    time_s: float = 600.0
    """No new try begins later than this after the first."""
    try_time_s: float = 1800.0
    """One try may take so long, however much it still sends."""
    first_wait_s: float = 1.0
    """Doubles with each try, and varies at random."""
    longest_wait_s: float = 60.0


@dataclass
class _Course:
    """How a call has gone so far."""

    bound: float | None
    """The most that one try can cost."""
    start: float = field(default_factory=time.monotonic)
    tries: int = 0
    lost: Usage = Usage()
    """What tries used that brought no answer."""
    failed: str = ""
    """The last failure, in words."""

    @property
    def waited_s(self) -> float:
        return time.monotonic() - self.start

    def usage(self) -> Usage:
        """What the call may cost, if it ends without an answer."""
        return msgspec.structs.replace(self.lost, waited_s=self.waited_s)

    def detail(self) -> str:
        return self.failed or f"no answer yet after {self.waited_s:.0f} s"


@dataclass
class PatientModel:
    """The `ChatModel` that makes an endpoint dependable.

    An option that the model refuses is left out from then on, and named in each `Completion`.
    """

    endpoint: Endpoint
    patience: Patience = Patience()
    refused: set[str] = field(default_factory=set)
    """Fields of `CallOptions`. Never `max_tokens`: the cap on cost rests on it."""

    @property
    def name(self) -> str:
        return self.endpoint.name

    @property
    def context_tokens(self) -> int | None:
        return self.endpoint.context_tokens

    @property
    def priced(self) -> bool:
        return self.endpoint.price is not None

    async def complete(
        self, messages: Sequence[Message], options: CallOptions = _NORMAL
    ) -> Completion:
        """As `ChatModel` says. What a failed call may cost is in its error's `usage`; so it is in a
        `CancelledError`, beside a `detail` that says how far the call was."""
        messages = [_encodable(message) for message in messages]
        course = _Course(self._bound(messages, options))
        try:
            while True:
                self._keep_cap(options.max_cost_usd, course)
                allowed = self._allowed(options)
                try:
                    completion = await self._try(messages, allowed, course)
                except CallFailed as failure:
                    course.lost += _lost(failure, course.bound)
                    course.failed = str(failure)
                    if not self._asks_less(failure, allowed, options):
                        course.tries += 1
                        await self._wait(failure, course)
                    continue
                return self._told(completion, options, course)
        except AgentError as error:
            error.usage = course.usage()
            raise
        except asyncio.CancelledError as error:
            vars(error).update(usage=course.usage(), detail=course.detail())
            raise

    async def aclose(self) -> None:
        await self.endpoint.aclose()

    async def _try(
        self, messages: Sequence[Message], options: CallOptions, course: _Course
    ) -> Completion:
        limit = self.patience.try_time_s
        try:
            async with asyncio.timeout(limit):
                return await self.endpoint.send(messages, options)
        except TimeoutError as error:
            text = f"no whole answer within {limit:g} s"
            raise CallFailed("broken", text, billed=True) from error
        except asyncio.CancelledError:
            course.lost += msgspec.structs.replace(UNKNOWN_USAGE, at_most_usd=course.bound)
            raise

    # -------------------------------------------------------------------------------- options

    def _allowed(self, options: CallOptions) -> CallOptions:
        """The options without what the model refuses, and with room for the input."""
        kept = {name: getattr(_NORMAL, name) for name in self.refused}
        room = self.context_tokens and max(1, self.context_tokens // 2)
        most = min(options.max_tokens, room or options.max_tokens)
        return msgspec.structs.replace(options, **kept, max_tokens=most)

    def _asks_less(self, failure: CallFailed, sent: CallOptions, options: CallOptions) -> bool:
        """Is an option that was sent refused? Then it is not sent again. And where the size of
        the context has just become known, a shorter answer may leave the input room enough."""
        if failure.kind == "overflow":
            return self._allowed(options).max_tokens < sent.max_tokens
        option = failure.option
        if failure.kind != "refused_option" or option is None or option == "max_tokens":
            return False
        if getattr(sent, option) == getattr(_NORMAL, option):
            return False
        self.refused.add(option)
        return True

    def _told(self, completion: Completion, options: CallOptions, course: _Course) -> Completion:
        missed = (n for n in self.refused if getattr(options, n) != getattr(_NORMAL, n))
        usage = completion.usage
        if usage.at_most_usd is None:
            usage = msgspec.structs.replace(usage, at_most_usd=course.bound)
        usage = msgspec.structs.replace(usage + course.lost, waited_s=course.waited_s)
        return msgspec.structs.replace(completion, usage=usage, dropped=tuple(sorted(missed)))

    # --------------------------------------------------------------------------------- money

    def _bound(self, messages: Sequence[Message], options: CallOptions) -> float | None:
        """What the call can cost at worst; `None` if the price is not known."""
        if self.endpoint.price is None:
            return None
        written = msgspec.json.encode((messages, options.tools, options.json_schema))
        return self.endpoint.price.at_most(most_tokens(written), options.max_tokens)

    def _keep_cap(self, cap: float | None, course: _Course) -> None:
        if cap is None:
            return
        if course.bound is None:
            raise AgentError(
                f"the price of {self.name} is not known, so a cap on cost can not be kept: leave "
                "--max-cost out, or write the price to a file and name it in MLE_IDEATOR_PRICES."
            )
        spent = course.lost.at_most_usd or 0.0
        if course.bound + spent > cap:
            raise OutOfBudget(
                f"a call of {self.name} could cost ${course.bound:.4f}, and "
                f"${max(0.0, cap - spent):.4f} is left: it was not made; raise --max-cost to go on."
            )

    # ------------------------------------------------------------------------------- failures

    async def _wait(self, failure: CallFailed, course: _Course) -> None:
        """Wait until the next try is due, or raise what ends the call."""
        if failure.kind == "overflow":
            raise ContextOverflow(f"{self.name}: {failure}") from failure
        if failure.kind not in ("busy", "broken", "adapted"):
            raise AgentError(f"{self.name}: {failure}") from failure
        tries = course.tries
        wait = 0.0 if failure.kind == "adapted" else self._pause(failure, tries)
        left = min(self.patience.time_s, failure.passes_within_s) - course.waited_s
        if tries >= self.patience.tries or wait > left:
            asked = failure.retry_after_s
            when = f"; it asks to wait {asked:.0f} s" if asked and tries == 1 else ""
            often = "once" if tries == 1 else f"{tries} times, the last time"
            raise AgentError(f"{self.name} failed {often}: {failure}{when}") from failure
        await asyncio.sleep(wait)

    def _pause(self, failure: CallFailed, tries: int) -> float:
        """Seconds: what the server asks for, else longer from try to try."""
        if failure.retry_after_s is not None:
            return failure.retry_after_s
        wait = min(self.patience.longest_wait_s, self.patience.first_wait_s * 2.0 ** (tries - 1))
        return wait * random.uniform(0.5, 1.0)


_IN_WORDS = (string.ascii_letters + " ").encode()
_FRAME_TOKENS = 500
"""What templates and tool instructions add to the messages."""


def most_tokens(written: bytes) -> int:
    """How many tokens a text can be: four letters or spaces make three at most (letters at random
    do, prose makes one), every other byte may be one by itself (digits are, in some models)."""
    others = len(written.translate(None, _IN_WORDS))
    return others + -(-3 * (len(written) - others) // 4) + _FRAME_TOKENS


def _lost(failure: CallFailed, bound: float | None) -> Usage:
    """What a failed try used: nothing, what the provider told, or nobody knows."""
    if not failure.billed:
        return Usage()
    usage = failure.usage or UNKNOWN_USAGE
    at_most = bound if usage.at_most_usd is None else usage.at_most_usd
    return msgspec.structs.replace(usage, at_most_usd=at_most)


def _encodable(message: Message) -> Message:
    """The message without halves of characters, which no request can carry."""
    if message.text.isascii():
        return message
    return msgspec.structs.replace(message, text=message.text.encode(errors="replace").decode())
