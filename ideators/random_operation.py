"""A random operation that fits the data: the form of a good idea, without the choice."""

from __future__ import annotations

from random import Random

from mle_ideator.ideators.offline.ranking import applicable
from mle_ideator.ideators.offline.reading import read
from mle_ideator.ideators.offline.wording import action, analysis
from mle_ideator.types import HelpState, Idea, Proposal


class RandomIdeator:
    """Draws one applicable operation, by the session's seed and the steps so far.

    It sees what can be applied and what is in the recipe already, but neither what usually helps
    nor what this session has shown. Better than this is what an ideator must be.
    """

    async def propose(self, state: HelpState) -> Proposal:
        situation = state.situation
        reading = read(state)
        names = [hint.operation for hint in applicable(reading)]
        if not names:
            return Proposal(None, "every operation that fits is in the solution already")
        draw = Random(f"{situation.seed}:{len(situation.trajectory)}").choice(names)
        rationale = f"Drawn at random among the {len(names)} operations that fit this data."
        return Proposal(Idea(analysis(reading), action((draw,), reading), rationale))
