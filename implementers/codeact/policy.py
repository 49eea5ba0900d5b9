"""The agent: messages from the situation, one call of its model, one action from the reply."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from mle_ideator.actions import STOPS, read_action
from mle_ideator.context import LEAST_BUDGET, conversation, tokens_of
from mle_ideator.errors import AgentError, ContextOverflow
from mle_ideator.implementers.codeact.head import head
from mle_ideator.implementers.codeact.tail import (
    Best,
    best_elsewhere,
    current_solution,
    solution_step,
    tail,
)
from mle_ideator.implementers.codeact.tools import TOOLS
from mle_ideator.implementers.codeact.written import as_calls, as_tags
from mle_ideator.messages import CallOptions, Completion, Message
from mle_ideator.protocols import ChatModel
from mle_ideator.registry import create
from mle_ideator.types import Decision, Situation, Step, Usage, Value
from mle_ideator.waiting import release

SHRINKS = 3
"""How often a request that the model can not read is made smaller."""
SHRINK = 0.6
"""To which share, each time."""


class CodeActOptions(Value, frozen=True, kw_only=True):
    """How the model is asked."""

    temperature: Annotated[float, Meta(ge=0, le=10)] | None = None
    """`None` leaves it to the model."""
    effort: Literal["low", "medium", "high"] | None = None
    """How much the model may reason; `None` leaves it to the model."""
    max_output_tokens: Annotated[int, Meta(ge=1)] = 8192
    """Of one reply, reasoning included."""
    context_tokens: Annotated[int, Meta(ge=LEAST_BUDGET)] = 60_000
    """Of one request, at most; less where the model can not read as many."""
    tools: bool = False
    """Native tool calls in place of tags."""
    seed: int | None = None
    """For models that take one."""


class CodeActImplementer:
    """Acts with a chat model: `codeact:SPEC`, SPEC being the model's, or SPEC alone.

    It keeps nothing of a session. Of its model it remembers how much that could read, and whether
    it takes tools.
    """

    Options = CodeActOptions

    def __init__(self, model_spec: str, options: CodeActOptions | None = None) -> None:
        self.model: ChatModel = create("chat_models", model_spec)
        self.options = options or CodeActOptions()
        self._share = 1.0
        self._tools = self.options.tools

    async def act(self, situation: Situation) -> Decision:
        """The model's next action; a reply that can not be read is `Malformed`.

        Raises `AgentError` as the model does.
        """
        reply, refused = await self._reply(situation)
        read = read_action(reply, tools=self._tools)
        if "tools" in reply.dropped:
            self._tools = False
        return Decision(
            action=read.action,
            thought=read.thought,
            reasoning="\n\n".join(filter(None, (reply.reasoning, read.reasoning))),
            ignored=read.ignored,
            usage=reply.usage + refused,
        )

    async def aclose(self) -> None:
        await release(self.model)

    # -------------------------------------------------------------------------- the call

    async def _reply(self, situation: Situation) -> tuple[Completion, Usage]:
        """The model's reply, and what the calls before it used that were too long for it.

        What all of them used goes with an error, too.
        """
        refused = Usage()
        try:
            for _ in range(SHRINKS):
                share, messages = self._share, self.messages(situation)
                try:
                    return await self._asked(messages, situation, refused), refused
                except ContextOverflow as error:
                    refused += error.usage or Usage(calls=1)  # refused input is not charged
                    # Not less for each session that finds out at the same time.
                    self._share = min(self._share, share * SHRINK)
            return await self._asked(self.messages(situation), situation, refused), refused
        except (AgentError, asyncio.CancelledError) as error:
            used = getattr(error, "usage", None)
            if used or refused.calls:
                vars(error)["usage"] = refused + (used or Usage())
            raise

    async def _asked(
        self, messages: tuple[Message, ...], situation: Situation, refused: Usage
    ) -> Completion:
        left = situation.remaining.cost_usd
        cap = None if left is None else max(0.0, left - (refused.at_most_usd or 0.0))
        return await self.model.complete(messages, self._call(cap))

    def _call(self, cap: float | None) -> CallOptions:
        options = self.options
        return CallOptions(
            max_tokens=self._output_tokens,
            temperature=options.temperature,
            effort=options.effort,
            stop=() if self._tools else STOPS,
            seed=options.seed,
            tools=TOOLS if self._tools else (),
            max_cost_usd=cap,
        )

    @property
    def _output_tokens(self) -> int:
        known = self.model.context_tokens
        most = self.options.max_output_tokens
        return min(most, known // 4) if known else most

    @property
    def budget(self) -> int:
        """Tokens that the messages of a request may have."""
        known = self.model.context_tokens
        room = self.options.context_tokens
        if known:
            room = min(room, known - self._output_tokens)
        if self._tools:
            room -= tokens_of(msgspec.json.encode(TOOLS).decode())
        return max(LEAST_BUDGET, int(room * self._share))

    # ---------------------------------------------------------------------- the messages

    def messages(self, situation: Situation) -> tuple[Message, ...]:
        """The request: system, task, the steps so far, the solution unless a step shows it, now.

        If the best solution is another one, and no step shows it, now says what it looks like.
        """
        best = best_elsewhere(situation, self.budget // 8)
        messages = self._with(situation, best)
        if best is None or (best.step and _shows(messages, self._written(best.step))):
            return messages
        return self._with(situation, msgspec.structs.replace(best, step=None))

    def _with(self, situation: Situation, best: Best | None) -> tuple[Message, ...]:
        return conversation(
            head(situation, tools=self._tools),
            situation.trajectory,
            tail(situation, best),
            self.budget,
            self._written,
            reminder=current_solution(situation),
            seen_in=solution_step(situation),
        )

    @property
    def _written(self) -> Callable[[Step], Sequence[Message]]:
        return as_calls if self._tools else as_tags


def _shows(messages: Sequence[Message], written: Sequence[Message]) -> bool:
    """Is there among the messages what the model wrote at a step, uncut?"""
    said = written[0]
    return any((sent.text, sent.calls) == (said.text, said.calls) for sent in messages)
