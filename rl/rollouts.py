"""The seam between whoever has ideas to be judged and whatever executes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from mle_ideator.errors import RuntimeFailure
from mle_ideator.rl.values import RolloutJob, RolloutResult, StateCard
from mle_ideator.types import HelpState


@runtime_checkable
class Rollouts(Protocol):
    """Help states, and a way to execute answers to them. All methods may be called many times at
    once, from one event loop."""

    async def run(self, job: RolloutJob) -> RolloutResult:
        """What came of an answer; the same job has the same result.

        An answer that is no idea is data: it is declined (0) or invalid (−1). Where the runtime
        broke, the result says so and has no reward, or `RuntimeFailure` is raised.
        """
        ...

    def help_state(self, id: str) -> HelpState:
        """What an ideator sees of a help state. Raises `UsageError` for one that is not there."""
        ...

    def card(self, id: str) -> StateCard:
        """Raises `UsageError` for a help state that is not there."""
        ...

    def cards(self) -> Sequence[StateCard]:
        """Of all help states, in an order that stays."""
        ...


async def attempted(rollouts: Rollouts, job: RolloutJob) -> RolloutResult:
    """What came of an answer, a runtime that broke told as a result without a reward."""
    try:
        return await rollouts.run(job)
    except RuntimeFailure as error:
        return broken(job.state, job.seed, error)


def broken(state: str, seed: int, error: RuntimeFailure) -> RolloutResult:
    """No result: something broke before or while an answer was tried."""
    return RolloutResult(
        state=state,
        idea=None,
        seed=seed,
        outcome="infra_error",
        reward=None,
        before=None,
        detail=str(error) or type(error).__name__,
    )
