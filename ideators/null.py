"""No guidance: the ablation that leaves the implementer to itself."""

from __future__ import annotations

from mle_ideator.types import HelpState, Proposal


class NullIdeator:
    """Answers every request with no idea."""

    async def propose(self, state: HelpState) -> Proposal:
        return Proposal(None, "no guidance")
