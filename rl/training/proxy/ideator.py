"""A proxy as an ideator, `proxy:FILE`: it chooses among ideas, its own or those of others."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from mle_ideator.ideators.offline.ranking import LEAST_GAIN, weigh
from mle_ideator.ideators.offline.reading import read
from mle_ideator.ideators.offline.wording import write
from mle_ideator.rl.training.proxy.model import Proxy
from mle_ideator.types import HelpState, Idea, Proposal


class ProxyIdeator:
    """Proposes, of all ideas that the offline ideator could have, the one that the proxy gives the
    best chance. With the option `choose: proxy:FILE` a `prompted` ideator chooses by it, too."""

    def __init__(self, file: str) -> None:
        self.proxy = Proxy.load(Path(file))

    async def propose(self, state: HelpState) -> Proposal:
        return await asyncio.to_thread(self._proposal, state)

    def score(self, state: HelpState, ideas: Sequence[Idea]) -> Sequence[float]:
        """The chance that each idea improves this help state."""
        return self.proxy.predict(state, ideas)

    def _proposal(self, state: HelpState) -> Proposal:
        reading = read(state)
        ideas = [write(one, reading) for one in weigh(reading) if one.gain >= LEAST_GAIN]
        if not ideas:
            return Proposal(None, "nothing left that I expect to help")
        chances = self.score(state, ideas)
        return Proposal(max(zip(chances, ideas, strict=True), key=lambda pair: pair[0])[1])
