"""The values of the training ground: help states, jobs, and what came of them."""

from __future__ import annotations

from typing import Any, Literal

from mle_ideator.rl.reward import REWARDS, IdeaOutcome
from mle_ideator.types import Idea, Proposal, Score, Value

Kind = Literal["draft", "debug", "improve"]
"""What a help state calls for: a first solution, one that works again, or a better one."""


class StateCard(Value, frozen=True, kw_only=True):
    """What is known of a help state without opening it."""

    id: str
    """SHA-256, in hex, of all that can decide what an idea does there."""
    task: str
    """Spec of the task."""
    kind: Kind
    depth: int = 0
    """How many rollouts lie between it and a session."""
    parent: str | None = None
    """Id of the help state that a rollout reached it from; `None` if a session did."""
    steps: int
    """Steps before the help request."""
    score: Score | None
    """The best one before it: public, or validation where there is no public one."""
    collected_at: str
    """UTC, ISO 8601."""


class RolloutJob(Value, frozen=True, kw_only=True):
    """One answer to one help state, to be executed once."""

    state: str
    """Its id."""
    proposal: Proposal
    """What an ideator answered: an idea, none, or none that could be read."""
    seed: int = 0
    attempts: int = 1
    """Cells that may fail before the idea is given up: 1 allows no repair."""


class RolloutResult(Value, frozen=True, kw_only=True):
    """What came of an answer."""

    state: str
    idea: Idea | None
    seed: int
    outcome: IdeaOutcome
    reward: float | None
    """`None` where the runtime is why nothing was tried."""
    before: Score | None = None
    """The best score in the help state."""
    after: Score | None = None
    """Of the solution that the attempt made."""
    improved: bool = False
    """Is that better, by the least gain that counts? Also where the implementer had no idea to
    carry out, which earns no reward."""
    child: str | None = None
    """Id of the help state that was reached, if it was kept."""
    seconds: float = 0.0
    detail: str = ""
    """Why nothing came of it, in words."""


def result_of(job: RolloutJob, outcome: IdeaOutcome, **found: Any) -> RolloutResult:
    """An outcome with its reward, and what else was found."""
    return RolloutResult(
        state=job.state,
        idea=job.proposal.idea,
        seed=job.seed,
        outcome=outcome,
        reward=REWARDS[outcome],
        **found,
    )
