"""'Try harder': the ablation that has the form of an idea and none of its content."""

from __future__ import annotations

from mle_ideator.types import HelpState, Idea, Proposal

_IDEA = Idea(
    analysis="Refine: the current solution is a start, and it can be better.",
    action="Try harder and improve the score.",
    rationale="More effort usually brings a better result.",
)


class VagueIdeator:
    """Answers every request with the same encouragement, which names nothing to do."""

    async def propose(self, state: HelpState) -> Proposal:
        return Proposal(_IDEA)
