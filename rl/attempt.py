"""The two agents of a rollout: one that makes a single attempt, and one that gives one answer.

Both hold nothing between calls: where a rollout stands follows from its trajectory.
"""

from __future__ import annotations

from dataclasses import dataclass

from mle_ideator.help_policy import HelpPolicy, request_in
from mle_ideator.protocols import Implementer
from mle_ideator.types import (
    Decision,
    Execute,
    Finish,
    HelpRequest,
    HelpState,
    Proposal,
    SeekHelp,
    Situation,
)

_OF_THE_RUNTIME = HelpPolicy("agent")


@dataclass(frozen=True)
class OneAttempt:
    """Seeks help as in the help state, lets the implementer act until a solution is made or cells
    have failed, and seeks help once more: what was reached is a help state again."""

    implementer: Implementer
    request: HelpRequest
    before: int
    """Steps before the help request."""
    cells: int
    """That may bring no solution before the idea is given up."""

    async def act(self, situation: Situation) -> Decision:
        after = situation.trajectory[self.before :]
        if not after:
            return Decision(SeekHelp(self.request))
        if len(after) > 1 and isinstance(after[-1].action, SeekHelp):
            return Decision(Finish("the attempt has been made"))
        cells = [step for step in after if isinstance(step.action, Execute)]
        if len(cells) >= self.cells or any(step.solution for step in cells):
            return _over(situation)
        decision = await self.implementer.act(situation)
        match decision.action:
            case Finish():
                return _over(situation)
            case _:
                return decision


def _over(situation: Situation) -> Decision:
    return Decision(SeekHelp(request_in(situation, _OF_THE_RUNTIME), asked_by="runtime"))


@dataclass(frozen=True)
class OneAnswer:
    """Answers the help state with what is to be tried, and then no more."""

    proposal: Proposal
    before: int

    async def propose(self, state: HelpState) -> Proposal:
        if len(state.situation.trajectory) == self.before:
            return self.proposal
        return Proposal(None, "the attempt has been made")
