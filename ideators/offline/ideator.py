"""The policy itself: rank, take the best, write it down."""

from __future__ import annotations

import asyncio

from mle_ideator.ideators.offline.ranking import LEAST_GAIN, weigh
from mle_ideator.ideators.offline.reading import read
from mle_ideator.ideators.offline.wording import write
from mle_ideator.types import HelpState, Proposal


class OfflineIdeator:
    """Proposes the operation with the best expected gain; uses no model and no network.

    Its ideas come from a fixed table of modelling operations, so it is as good as that table: it
    invents nothing. The same help state always brings the same idea.
    """

    async def propose(self, state: HelpState) -> Proposal:
        # A long state takes seconds, in which a server has others to answer.
        return await asyncio.to_thread(_proposal, state)


def _proposal(state: HelpState) -> Proposal:
    reading = read(state)
    best = next(iter(weigh(reading)), None)
    if best is None or best.gain < LEAST_GAIN:
        return Proposal(None, "nothing left that I expect to help")
    return Proposal(write(best, reading))
