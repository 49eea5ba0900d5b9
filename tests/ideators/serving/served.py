"""Ideators that the tests host in processes of their own: `served:Echo`, run from this folder."""

from __future__ import annotations

import asyncio
import hashlib
import time

import msgspec

from mle_ideator.errors import AgentError, ContextOverflow, OutOfBudget
from mle_ideator.messages import Completion
from mle_ideator.types import HelpState, Idea, Proposal, Usage, Value


def fingerprint(state: HelpState) -> str:
    return hashlib.sha256(msgspec.json.encode(state)).hexdigest()


class EchoOptions(Value, frozen=True, kw_only=True):
    seconds: float = 0.0
    name: str = "echo"


class Echo:
    """Says which state it saw, after so many seconds; a request's `problem` may ask for trouble."""

    Options = EchoOptions

    def __init__(self, options: EchoOptions = EchoOptions()) -> None:  # noqa: B008
        self._options = options

    async def propose(self, state: HelpState) -> Proposal:
        await asyncio.sleep(self._options.seconds)
        match state.request.problem:
            case "agent":
                raise AgentError("the model's server\nis gone.")
            case "overflow":
                raise ContextOverflow("90,000 tokens are too many.")
            case "money":
                raise OutOfBudget("a call could cost $2, and $1 is left.")
            case "bug":
                secret_of_the_server = {}
                return secret_of_the_server["no such key"]
            case "nothing":
                return Proposal(None, "I see nothing")
        usage = Usage(1, 1000, 600, 50, 20, 0.25, 0.25)
        return Proposal(Idea("Refine: go on.", fingerprint(state), self._options.name), usage=usage)

    async def aclose(self) -> None:
        print("closed", flush=True)


class Blocking:
    """Computes without giving way to anybody."""

    async def propose(self, state: HelpState) -> Proposal:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            pass
        return Proposal(None, "done")


class Surrogates:
    """An ideator and a model whose words UTF-8 can not hold."""

    name = "surrogates"
    context_tokens = None

    @property
    def model(self) -> Surrogates:
        return self

    async def complete(self, messages: object, options: object) -> Completion:
        return Completion(text="half a \ud83d", finish_reason="stop")

    async def propose(self, state: HelpState) -> Proposal:
        match state.request.problem:
            case "agent":
                raise AgentError("half a \ud83d")
            case "text":
                return "an idea"
            case "parts":
                return Proposal(Idea("Refine: x.", 7, "z"))
        return Proposal(Idea("Refine: half a \ud83d", "Go on.", "It helps."))


class Terminal(Echo):
    uses_terminal = True
