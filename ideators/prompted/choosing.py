"""One of several ideas: by vote of the model that wrote them, by the offline ranking, or by what
another ideator thinks of them."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

from mle_ideator.errors import AgentError, UsageError
from mle_ideator.ideators.offline.ranking import LEAST_GAIN, rank
from mle_ideator.ideators.prompted.drafting import asked
from mle_ideator.ideators.prompted.purse import Purse
from mle_ideator.messages import CallOptions, Message
from mle_ideator.operations import mentioned
from mle_ideator.prompts import render
from mle_ideator.protocols import ChatModel
from mle_ideator.registry import create
from mle_ideator.types import HelpState, Idea

CHOICE_STOP = "</choice>"
_CHOICE = re.compile(r"<\s*choice\s*>\s*#?(\d{1,3})\s*(?:<\s*/\s*choice\s*>|$)", re.IGNORECASE)


def merged(ideas: Iterable[Idea]) -> list[Idea]:
    """Without those that say the same as an earlier one, but for case, space and signs."""
    kept: dict[tuple[int | None, str], Idea] = {}
    for idea in ideas:
        words = " ".join(re.findall(r"\w+", idea.action.casefold()))
        kept.setdefault((idea.reverts_to, words), idea)
    return list(kept.values())


# --------------------------------------------------------------------------------- by vote


async def voted(
    model: ChatModel,
    messages: Sequence[Message],
    ideas: Sequence[Idea],
    options: CallOptions,
    purse: Purse,
    ballots: int,
) -> Idea:
    """The idea with the most votes, the earlier one of those with as many.

    Each ballot lists the ideas from another one on, since models favour places in a list. A
    ballot that can not be read or cast is not counted.
    """
    shares = purse.shares(ballots)
    votes = await asyncio.gather(
        *(
            _vote(model, messages, _turned(ideas, number), options, share)
            for number, share in enumerate(shares)
        )
    )
    for share in shares:
        purse.settle(share.used)
    counted = Counter(
        (number + vote) % len(ideas) for number, vote in enumerate(votes) if vote is not None
    )
    return max(enumerate(ideas), key=lambda numbered: (counted[numbered[0]], -numbered[0]))[1]


def _turned(ideas: Sequence[Idea], number: int) -> Sequence[Idea]:
    start = number % len(ideas)
    return [*ideas[start:], *ideas[:start]]


async def _vote(
    model: ChatModel,
    messages: Sequence[Message],
    ideas: Sequence[Idea],
    options: CallOptions,
    purse: Purse,
) -> int | None:
    """Which of the ideas, counted from 0; `None` if no vote was cast."""
    ballot = Message("user", render("ideator/ballot", ideas=ideas))
    try:
        answer = await asked(model, [*messages, ballot], options, purse)
    except AgentError:
        return None
    return None if answer.finish_reason == "length" else read_choice(answer.text, len(ideas))


def read_choice(text: str, number: int) -> int | None:
    """The one choice in an answer, counted from 0; `None` if there is none, or more than one."""
    choices = {int(choice) for choice in _CHOICE.findall(text.strip())}
    if len(choices) != 1:
        return None
    choice = choices.pop()
    return choice - 1 if 1 <= choice <= number else None


# ------------------------------------------------------------------------------ by ranking


def ranked(state: HelpState, ideas: Sequence[Idea]) -> Idea:
    """The idea whose operations promise most here, the earlier one of those that promise as much.

    An idea promises the mean of what the operations that it names do; one that names none that the
    offline ideator knows promises the least gain that is worth asking for.
    """
    gains = {candidate.operations[0]: candidate.gain for candidate in rank(state)}

    def promise(idea: Idea) -> float:
        known = [gains.get(operation.name, 0.0) for operation in mentioned(idea.action)]
        return sum(known) / len(known) if known else LEAST_GAIN

    return max(ideas, key=promise)


# ------------------------------------------------------------------------------ by another


@runtime_checkable
class Scorer(Protocol):
    """An ideator that can say what it thinks of ideas, its own or others'."""

    def score(self, state: HelpState, ideas: Sequence[Idea]) -> Sequence[float]:
        """A number for each idea, the more the better."""
        ...


def scorer_of(spec: str) -> Scorer:
    """The ideator that a spec names, as one that scores. Raises `UsageError`."""
    try:
        found = create("ideators", spec)
    except UsageError as error:
        raise UsageError(
            f"choose must be vote, ranker or an ideator that scores, as proxy:FILE; {error}"
        ) from error
    if not isinstance(found, Scorer):
        raise UsageError(f"choose: {spec!r} has no method score; vote and ranker need none.")
    return found


def best_scored(scorer: Scorer, state: HelpState, ideas: Sequence[Idea]) -> Idea:
    """The idea with the best score, the earlier one of those with as much."""
    scores = scorer.score(state, ideas)
    return max(zip(scores, ideas, strict=True), key=lambda scored: scored[0])[1]
