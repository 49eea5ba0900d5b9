"""The agent: messages from the situation, one call of its model, one action from the reply."""

from __future__ import annotations

from typing import Literal

import msgspec

from mle_ideator.actions import STOPS, read_action
from mle_ideator.context import LEAST_BUDGET, conversation, tokens_of
from mle_ideator.errors import ContextOverflow, UsageError
from mle_ideator.implementers.codeact.head import head
from mle_ideator.implementers.codeact.tail import current_solution, solution_step, tail
from mle_ideator.implementers.codeact.tools import TOOLS
from mle_ideator.implementers.codeact.written import as_calls, as_tags
from mle_ideator.messages import CallOptions, Completion, Message
from mle_ideator.protocols import ChatModel
from mle_ideator.registry import create
from mle_ideator.types import Decision, Situation, Usage, Value

SHRINKS = 3
"""How often a request that the model can not read is made smaller."""
SHRINK = 0.6
"""To which share, each time."""


class CodeActOptions(Value, frozen=True, kw_only=True):
    """How the model is asked."""

    temperature: float | None = None
    """`None` leaves it to the model."""
    effort: Literal["low", "medium", "high"] | None = None
    """How much the model may reason; `None` leaves it to the model."""
    max_output_tokens: int = 8192
    """Of one reply, reasoning included."""
    context_tokens: int = 60_000
    """Of one request, at most; less where the model can not read as many."""
    tools: bool = False
    """Native tool calls in place of tags."""
    seed: int | None = None
    """For models that take one."""

    def __post_init__(self) -> None:
        for name, least in (("max_output_tokens", 1), ("context_tokens", LEAST_BUDGET)):
            if getattr(self, name) < least:
                raise UsageError(f"option {name!r} must be {least} or more.")


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
        if close := getattr(self.model, "aclose", None):
            await close()

    # -------------------------------------------------------------------------- the call

    async def _reply(self, situation: Situation) -> tuple[Completion, Usage]:
        """The model's reply, and what the calls before it used that were too long for it."""
        refused, shrinks = Usage(), 0
        while True:
            share, messages = self._share, self.messages(situation)
            try:
                return await self.model.complete(messages, self._call(situation)), refused
            except ContextOverflow as error:
                if shrinks == SHRINKS:
                    raise
                shrinks += 1
                refused += error.usage or Usage(calls=1)  # refused input is not charged
                # Not less for each session that finds out at the same time.
                self._share = min(self._share, share * SHRINK)

    def _call(self, situation: Situation) -> CallOptions:
        options = self.options
        return CallOptions(
            max_tokens=self._output_tokens,
            temperature=options.temperature,
            effort=options.effort,
            stop=() if self._tools else STOPS,
            seed=options.seed,
            tools=TOOLS if self._tools else (),
            max_cost_usd=situation.remaining.cost_usd,
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
        """The request: system, task, the steps so far, the solution unless a step shows it, now."""
        code = current_solution(situation)
        return conversation(
            head(situation, tools=self._tools),
            situation.trajectory,
            tail(situation),
            self.budget,
            as_calls if self._tools else as_tags,
            reminder=code,
            seen_in=solution_step(situation),
        )
