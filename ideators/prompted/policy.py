"""The policy itself: draft ideas, choose one, sum up the bill."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from mle_ideator.errors import AgentError, ContextOverflow, OutOfBudget
from mle_ideator.idea_form import STOP, idea_schema
from mle_ideator.ideators.prompted.choosing import (
    CHOICE_STOP,
    Scorer,
    best_scored,
    merged,
    ranked,
    scorer_of,
    voted,
)
from mle_ideator.ideators.prompted.compact import LEAST_COMPACT
from mle_ideator.ideators.prompted.drafting import Draft, drafted
from mle_ideator.ideators.prompted.messages import Asked, Form
from mle_ideator.ideators.prompted.purse import Purse
from mle_ideator.messages import CallOptions
from mle_ideator.protocols import ChatModel
from mle_ideator.registry import create
from mle_ideator.types import HelpState, Idea, Proposal, Value
from mle_ideator.waiting import release

SHRINKS = 3
"""So often a request that is too long for the model is made shorter."""
SHRINK = 0.6
"""Input and output: servers count both against their context."""
SEVERAL_TEMPERATURE = 0.8
"""Several candidates are drawn at this temperature unless another is given."""


class PromptedOptions(Value, frozen=True, kw_only=True):
    """How a model is asked."""

    ideas: Annotated[int, Meta(ge=1, le=32)] = 1
    """Candidates that the idea is chosen from."""
    choose: str = "vote"
    """By votes of the model (`vote`), by the expected gains of the offline ideator (`ranker`), or
    by an ideator that scores ideas (`proxy:FILE`); only votes take model calls."""
    ballots: Annotated[int, Meta(ge=1, le=32)] = 3
    """Votes that are cast."""
    temperature: Annotated[float, Meta(ge=0)] | None = None
    """`None` leaves it to the model, 0.8 where there are several candidates."""
    effort: Literal["low", "medium", "high"] | None = None
    """How much the model may reason; `None` leaves it to the model."""
    max_output_tokens: Annotated[int, Meta(ge=64)] = 8192
    """Of one answer, reasoning included; never more than a quarter of the model's context."""
    context_tokens: Annotated[int, Meta(ge=LEAST_COMPACT)] = 60_000
    """Most tokens of one request, as far as the model can read as many; below 2048 the help state
    is told in few words."""
    form: Form = "tags"
    """`json` sends a JSON schema too: servers with grammars then always answer in form."""


class PromptedIdeator:
    """Any chat model as the ideator: `prompted:openai:MODEL`, or only `openai:MODEL`.

    It remembers how much the model can read, nothing of what was asked.
    """

    Options = PromptedOptions
    _scorer: Scorer | None = None

    def __init__(self, model_spec: str, options: PromptedOptions | None = None) -> None:
        self.model: ChatModel = create("chat_models", model_spec)
        self.options = options or PromptedOptions()
        if self.options.choose not in ("vote", "ranker"):
            self._scorer = scorer_of(self.options.choose)
        self._share = 1.0

    async def propose(self, state: HelpState) -> Proposal:
        purse = Purse(state.situation.remaining.cost_usd)
        asked = Asked(state, self.options.form, again=self.options.ideas > 1)
        drafts = await self._drafts(asked, purse)
        ideas = merged(draft.idea for draft in drafts if draft.idea)
        if not ideas:
            return _none(drafts, purse)
        idea = await self._chosen(ideas, asked, purse) if len(ideas) > 1 else ideas[0]
        return Proposal(idea, usage=purse.used)

    async def aclose(self) -> None:
        await release(self.model)
        if self._scorer:
            await release(self._scorer)

    # -------------------------------------------------------------------------------- drafts

    async def _drafts(self, asked: Asked, purse: Purse) -> Sequence[Draft]:
        """As many as wanted, at the same time; one, if the money is short for all of them."""
        number = self.options.ideas
        drafts = await self._at_once(number, asked, purse)
        if number > 1 and all(isinstance(draft.error, OutOfBudget) for draft in drafts):
            return await self._at_once(1, asked, purse)
        return drafts

    async def _at_once(self, number: int, asked: Asked, purse: Purse) -> Sequence[Draft]:
        try:
            await asked.messages(self._budget(self._share))  # now, so that all are sent at once
        except AgentError as error:
            return [Draft(error=error)]
        shares = purse.shares(number)
        drafts = await asyncio.gather(
            *(self._draft(asked, share, place) for place, share in enumerate(shares))
        )
        for share in shares:
            purse.settle(share.used)
        return drafts

    async def _draft(self, asked: Asked, purse: Purse, place: int) -> Draft:
        """One candidate, from shorter messages if the model can not read as much."""
        situation, share = asked.state.situation, self._share
        numbers = [solution.number for solution in situation.solutions]
        for _ in range(1 + SHRINKS):
            try:
                options = self._call(share, situation.seed + place, numbers)
                messages = await asked.messages(self._budget(share))
                draft = await drafted(
                    *(self.model, messages, options, purse),
                    form=self.options.form,
                    solutions=numbers,
                )
            except ContextOverflow as error:
                overflow, share = error, share * SHRINK
            except AgentError as error:
                return Draft(error=error)
            else:
                self._share = min(self._share, share)
                return draft
        return Draft(error=AgentError(f"{overflow} (shortened {SHRINKS} times)"))

    async def _chosen(self, ideas: Sequence[Idea], asked: Asked, purse: Purse) -> Idea:
        if self.options.choose == "ranker":
            return await asyncio.to_thread(ranked, asked.state, ideas)
        if self._scorer:
            return await asyncio.to_thread(best_scored, self._scorer, asked.state, ideas)
        messages = await asked.messages(self._budget(self._share))
        call = self._call(self._share, asked.state.situation.seed)
        options = msgspec.structs.replace(call, stop=(CHOICE_STOP,), json_schema=None)
        return await voted(self.model, messages, ideas, options, purse, self.options.ballots)

    # ------------------------------------------------------------------------------- requests

    def _call(self, share: float, seed: int, solutions: Sequence[int] = ()) -> CallOptions:
        options, tags = self.options, self.options.form == "tags"
        several = SEVERAL_TEMPERATURE if options.ideas > 1 else None
        return CallOptions(
            max_tokens=int(self._output_tokens * share),
            temperature=several if options.temperature is None else options.temperature,
            effort=options.effort,
            stop=(STOP,) if tags else (),
            seed=seed,
            json_schema=None if tags else idea_schema(solutions),
        )

    @property
    def _output_tokens(self) -> int:
        context = self.model.context_tokens
        return min(self.options.max_output_tokens, context // 4 if context else 10**9)

    def _budget(self, share: float) -> int:
        """Tokens that a request may have."""
        context = self.model.context_tokens
        most = context - self._output_tokens if context else self.options.context_tokens
        return int(min(self.options.context_tokens, most) * share)


def _none(drafts: Sequence[Draft], purse: Purse) -> Proposal:
    """Why there is no idea. Raises `AgentError` if no candidate could be asked for."""
    answered = [draft for draft in drafts if draft.error is None]
    if not answered:
        error = drafts[0].error or AgentError("no idea was asked for.")
        error.usage = purse.used
        raise error
    told = next((draft for draft in answered if not draft.declined), answered[0])
    reason = told.reason if told.declined else f"the answer was no idea: {told.reason}"
    return Proposal(None, reason, purse.used, malformed=not told.declined)
