"""One idea from a model: asked for, strictly read, repaired once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import msgspec

from mle_ideator.context.cutting import cut
from mle_ideator.errors import AgentError, ContextOverflow, OutOfBudget
from mle_ideator.idea_form import PARTS, read_idea, wrong_revert
from mle_ideator.ideators.prompted.messages import EXAMPLE, Form
from mle_ideator.ideators.prompted.purse import Purse
from mle_ideator.messages import CallOptions, Completion, Message
from mle_ideator.prompts import render
from mle_ideator.protocols import ChatModel
from mle_ideator.types import Idea, Usage

SHOWN_TOKENS = 1500
"""As much of a bad answer is shown to the model that is to repair it."""


@dataclass(frozen=True)
class Draft:
    """What came of asking once: an idea, or why there is none."""

    idea: Idea | None = None
    reason: str = ""
    declined: bool = False
    """Did the model refuse to answer?"""
    error: AgentError | None = None
    """Why it could not be asked at all."""


async def asked(
    model: ChatModel, messages: Sequence[Message], options: CallOptions, purse: Purse
) -> Completion:
    """One call, within what is left in the purse and billed to it. Raises `AgentError`."""
    options = msgspec.structs.replace(options, max_cost_usd=purse.cap_usd)
    try:
        completion = await model.complete(messages, options)
    except AgentError as error:
        unmade = isinstance(error, OutOfBudget)
        purse.settle(error.usage or Usage(calls=0 if unmade else 1))
        raise
    purse.settle(completion.usage)
    return completion


async def drafted(
    model: ChatModel,
    messages: Sequence[Message],
    options: CallOptions,
    purse: Purse,
    *,
    form: Form,
    solutions: Sequence[int],
) -> Draft:
    """An idea that can be carried out where these solutions exist.

    Raises `ContextOverflow` if the messages are too long; other failures are in the draft.
    """
    try:
        first = await asked(model, messages, options, purse)
    except ContextOverflow:
        raise
    except AgentError as error:
        return Draft(error=error)
    draft = _judged(first, solutions, options)
    if draft.idea or draft.declined:
        return draft
    repair = [
        Message("assistant", cut(first.text, SHOWN_TOKENS).strip() or "(nothing)"),
        Message("user", render("ideator/repair", reason=draft.reason, form=form)),
    ]
    try:
        second = await asked(model, [*messages, *repair], options, purse)
    except AgentError as error:
        return Draft(reason=f"{draft.reason}, and it could not be asked again ({error})")
    return _judged(second, solutions, options)


def _judged(completion: Completion, solutions: Sequence[int], options: CallOptions) -> Draft:
    if completion.finish_reason == "refused":
        return Draft(reason="the model refused to answer", declined=True)
    if completion.finish_reason == "length":
        limit = f"{options.max_tokens} output tokens"
        return Draft(reason=f"it was cut at the limit of {limit} before its end; be briefer")
    idea, wrong = read_idea(completion.text)
    if idea is None:
        return Draft(reason=wrong)
    if _copied(idea):
        return Draft(reason="it repeats the example, which is about another task")
    wrong = wrong_revert(idea, solutions)
    return Draft(reason=wrong) if wrong else Draft(idea)


def _copied(idea: Idea) -> bool:
    """Is a part of it, but for a few characters, the example's?"""
    return any(_alike(getattr(idea, name), getattr(EXAMPLE, name)) for name in PARTS)


def _alike(said: str, shown: str) -> bool:
    match = SequenceMatcher(None, said, shown)
    # The first two are upper bounds of the third, which takes long where texts are.
    ratios = (match.real_quick_ratio, match.quick_ratio, match.ratio)
    return all(ratio() > 0.85 for ratio in ratios)
