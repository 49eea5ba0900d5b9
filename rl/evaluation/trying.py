"""Every ideator on every help state, so many at a time."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import msgspec

from mle_ideator.errors import (
    AgentError,
    AgentTimeout,
    MleIdeatorError,
    UsageError,
)
from mle_ideator.ideators.answering import proposal_of
from mle_ideator.protocols import Ideator
from mle_ideator.rl.evaluation.log import Key, log_at
from mle_ideator.rl.evaluation.values import Evaluation, Try
from mle_ideator.rl.rollouts import Rollouts, attempted, broken
from mle_ideator.rl.values import RolloutJob, RolloutResult, StateCard
from mle_ideator.types import UNKNOWN_USAGE, HelpState, Proposal, Usage

PARALLEL = 4
IDEA_S = 600.0

Listener = Callable[[Try], None]


async def evaluate(
    contenders: Mapping[str, Ideator],
    rollouts: Rollouts,
    states: Sequence[StateCard],
    *,
    ideas: int = 1,
    seed: int = 0,
    attempts: int = 1,
    parallel: int = PARALLEL,
    idea_s: float = IDEA_S,
    log: Path | None = None,
    setting: str = "",
    listener: Listener | None = None,
) -> Evaluation:
    """Ask each contender for `ideas` answers to each help state, and execute each answer once.

    For each state and answer a seed is drawn from `seed`, the same for all contenders: the ideator
    has it as the situation's, the rollout as its own. A contender that raises `AgentError`, that
    breaks, or that has not answered after `idea_s` seconds has no result there; so has an answer
    for which the rollout broke. Of `parallel` answers at a time, those to one state come together.

    With a `log`, tries are written to it as they end, and what has a result there is not tried
    again; a name there has to mean the same ideator again, and `setting` the same rollouts.
    `listener` is told of each try that ends now. Raises `UsageError` if the call is wrong.
    """
    _check(contenders, states, ideas, parallel)
    cards = tuple(sorted(states, key=lambda card: (card.task, card.id)))
    # State by state, so that what is broken off can be compared as far as it got.
    wanted = [
        Key(contender, card.id, seed, place)
        for card in cards
        for place in range(ideas)
        for contender in contenders
    ]
    with log_at(log, setting, attempts) as file:
        trial = _Trial(contenders, rollouts, attempts, idea_s)
        missing = (key for key in wanted if file.lacks(key))

        async def work() -> None:
            for key in missing:
                one = await trial.made(key)
                file.append(one)
                if listener:
                    listener(one)

        await _together(work() for _ in range(parallel))
        tries = tuple(file.tries[key] for key in wanted)
    return Evaluation(
        contenders=tuple(contenders), states=cards, ideas=ideas, seed=seed, tries=tries
    )


def drawn_seed(state: str, seed: int, place: int) -> int:
    """The seed of a state's answer: small, and another one on each state, so that what ideators
    draw on two states has nothing in common."""
    return Random(f"{state}:{seed}:{place}").randrange(1_000_000)


@dataclass(frozen=True)
class _Trial:
    contenders: Mapping[str, Ideator]
    rollouts: Rollouts
    attempts: int
    idea_s: float

    async def made(self, key: Key) -> Try:
        """An answer, and what came of it."""
        seed = drawn_seed(key.state, key.seed, key.place)
        begun = time.monotonic()
        try:
            proposal = await self._answer(key, seed)
        except AgentError as error:
            usage = error.usage or UNKNOWN_USAGE
            return _tried(key, broken(key.state, seed, error), time.monotonic() - begun, usage)
        took = time.monotonic() - begun
        job = RolloutJob(state=key.state, proposal=proposal, seed=seed, attempts=self.attempts)
        result = await attempted(self.rollouts, job)
        return _tried(key, result, took, proposal.usage)

    async def _answer(self, key: Key, seed: int) -> Proposal:
        """Raises `AgentError` if there is none."""
        state = _seeded(self.rollouts.help_state(key.state), seed)
        try:
            async with asyncio.timeout(self.idea_s) as deadline:
                return await proposal_of(self.contenders[key.contender], state)
        except MleIdeatorError:
            raise
        except Exception as error:
            if deadline.expired():
                raise AgentTimeout(
                    f"the ideator did not answer within {self.idea_s:.3g} s"
                ) from error
            raise AgentError(f"the ideator broke: {type(error).__name__}: {error}") from error


def _seeded(state: HelpState, seed: int) -> HelpState:
    situation = msgspec.structs.replace(state.situation, seed=seed)
    return msgspec.structs.replace(state, situation=situation)


def _tried(key: Key, result: RolloutResult, took: float, usage: Usage) -> Try:
    return Try(
        contender=key.contender,
        state=key.state,
        seed=key.seed,
        place=key.place,
        result=result,
        ideator_seconds=took,
        usage=usage,
    )


def _check(
    contenders: Mapping[str, Ideator], states: Sequence[StateCard], ideas: int, parallel: int
) -> None:
    if not contenders:
        raise UsageError("nothing is evaluated without an ideator: name at least one.")
    if not states:
        raise UsageError("there is no help state to evaluate on: collect some first.")
    if ideas < 1 or parallel < 1:
        raise UsageError("ideas and parallel must be at least 1.")
    counts = Counter(card.id for card in states)
    if twice := next((state for state, count in counts.items() if count > 1), None):
        raise UsageError(f"the help state {twice} is named twice; name each once.")


async def _together(works: Iterable[Coroutine[None, None, None]]) -> None:
    """All of them; the first error ends the others, and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
