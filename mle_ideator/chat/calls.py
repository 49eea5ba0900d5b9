"""One call to a model, whoever serves it: keep the cap, try, drop what is refused, wait, retry."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import msgspec

from mle_ideator.chat.prices import Price
from mle_ideator.errors import AgentError, ContextOverflow, OutOfBudget
from mle_ideator.messages import CallOptions, Completion, Message
from mle_ideator.types import Usage, Value

Kind = Literal["busy", "broken", "refused_option", "overflow", "wrong"]
"""What went wrong: only `busy` (429, overloaded) and `broken` (5xx, a lost connection, a cut
stream, rubbish, nothing at all) pass by themselves."""

BYTES_A_TOKEN = 2.0
"""Texts have more in practice, so that an input's size over this bounds its tokens."""


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
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after_s = retry_after_s
        self.option = option
        """The field of `CallOptions` that is refused."""
        self.billed = billed
        """May the provider charge for it all the same (a stream that broke)?"""


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
    first_wait_s: float = 1.0
    """Doubles with each try, and varies at random."""
    longest_wait_s: float = 60.0


@dataclass
class PatientModel:
    """The `ChatModel` that makes an endpoint dependable.

    An option that the model refuses is left out from then on, and named in each `Completion`.
    """

    endpoint: Endpoint
    patience: Patience = Patience()
    refused: set[str] = field(default_factory=set)

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
        self, messages: Sequence[Message], options: CallOptions = CallOptions()
    ) -> Completion:
        bound = self._bound(messages, options)
        start, lost = time.monotonic(), Usage()
        while True:
            self._keep_cap(options.max_cost_usd, bound, lost)
            try:
                completion = await self.endpoint.send(messages, self._allowed(options))
            except CallFailed as failure:
                lost += _lost(failure, bound)
                await self._after(failure, lost.calls, start)
                continue
            return self._told(completion, options, bound, lost, time.monotonic() - start)

    async def aclose(self) -> None:
        await self.endpoint.aclose()

    # -------------------------------------------------------------------------------- options

    def _allowed(self, options: CallOptions) -> CallOptions:
        """The options without what the model refuses."""
        defaults = CallOptions()
        kept = {name: getattr(defaults, name) for name in self.refused}
        return msgspec.structs.replace(options, **kept)

    def _told(
        self,
        completion: Completion,
        options: CallOptions,
        bound: float | None,
        lost: Usage,
        waited_s: float,
    ) -> Completion:
        defaults = CallOptions()
        dropped = tuple(
            name
            for name in sorted(self.refused)
            if getattr(options, name) != getattr(defaults, name)
        )
        usage = completion.usage
        if usage.at_most_usd is None:
            usage = msgspec.structs.replace(usage, at_most_usd=bound)
        usage = msgspec.structs.replace(usage + lost, waited_s=waited_s)
        return msgspec.structs.replace(completion, usage=usage, dropped=dropped)

    # --------------------------------------------------------------------------------- money

    def _bound(self, messages: Sequence[Message], options: CallOptions) -> float | None:
        """What the call can cost at worst; `None` if the price is not known."""
        if self.endpoint.price is None:
            return None
        size = len(msgspec.json.encode((list(messages), options.tools, options.json_schema)))
        return self.endpoint.price.at_most(int(size / BYTES_A_TOKEN) + 1, options.max_tokens)

    def _keep_cap(self, cap: float | None, bound: float | None, lost: Usage) -> None:
        if cap is None:
            return
        if bound is None:
            raise AgentError(f"the price of {self.name} is not known, so a cap can not be kept.")
        if bound + (lost.at_most_usd or 0.0) > cap:
            raise OutOfBudget(
                f"a call of {self.name} could cost ${bound:.4f}, and ${cap:.4f} is left: "
                "it was not made; raise --max-cost to go on."
            )

    # ------------------------------------------------------------------------------- failures

    async def _after(self, failure: CallFailed, tries: int, start: float) -> None:
        """Get ready for another try, or raise what ends the call."""
        if failure.kind == "refused_option" and failure.option not in self.refused | {None}:
            self.refused.add(str(failure.option))
            return
        if failure.kind == "overflow":
            raise ContextOverflow(f"{self.name}: {failure}") from failure
        if failure.kind not in ("busy", "broken"):
            raise AgentError(f"{self.name}: {failure}") from failure
        wait = self._wait(failure, tries)
        if tries >= self.patience.tries or time.monotonic() - start + wait > self.patience.time_s:
            raise AgentError(
                f"{self.name} failed {tries} times, the last time: {failure}"
            ) from failure
        await asyncio.sleep(wait)

    def _wait(self, failure: CallFailed, tries: int) -> float:
        if failure.retry_after_s is not None:
            return failure.retry_after_s
        wait = min(self.patience.longest_wait_s, self.patience.first_wait_s * 2.0 ** (tries - 1))
        return wait * random.uniform(0.5, 1.0)


def _lost(failure: CallFailed, bound: float | None) -> Usage:
    """What a failed try used: nothing, or nobody knows."""
    if not failure.billed:
        return Usage(calls=1)
    return Usage(
        calls=1,
        input_tokens=None,
        cached_tokens=None,
        output_tokens=None,
        reasoning_tokens=None,
        cost_usd=None,
        at_most_usd=bound,
    )
