"""Agents of a task that one number solves (`tests.benchmarks.twice`): ideas say which to try."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from random import Random

from mle_ideator.types import Decision, Execute, Idea, Proposal, SeekHelp
from tests.rl.rollout_agents import DoesAsTold, solves

FACTORS = (0.5, 1.5, 1.7, 1.9, 3.5)
"""The first solution has 1, and 2 is perfect: three of them are better."""
LOG = "FACTORS_LOG"


class SetsFactor(DoesAsTold):
    """Tries the first number of an idea, and writes down what it did, where."""

    async def act(self, situation):
        decision = await super().act(situation)
        asked = [step for step in situation.trajectory if isinstance(step.action, SeekHelp)]
        if not (asked and isinstance(decision.action, Execute)):
            return decision
        number = re.search(r"\d+\.\d+", decision.action.code)
        code = solves(float(number[0]) if number else 1.0)
        if LOG in os.environ:
            write_down(situation, number and number[0])
        return Decision(Execute("python", code))

    def gist(self, idea):
        return " ".join(re.findall(r"\d+\.\d+", idea.action)[:1])


def write_down(situation, number: str | None) -> None:
    codes = [step.action.code for step in situation.trajectory if hasattr(step.action, "code")]
    before = hashlib.sha256("\0".join(codes).encode()).hexdigest()[:12]
    with Path(os.environ[LOG]).open("a") as log:
        log.write(f"{before} {number}\n")


class AnyFactor:
    """Draws one by the seed."""

    async def propose(self, state):
        factor = Random(state.situation.seed).choice(FACTORS)
        action = f"Set the factor to {factor}."
        return Proposal(Idea("Refine: it is near.", action, "It may be better."))
