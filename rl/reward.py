"""The one-step execution reward of each idea in a recorded session (arXiv 2601.17596).

An idea earns +1 if the first solution that follows it beats the best one before it, 0 if it does
not, if nothing came of it or none was given, −1 if the answer was no well-formed idea. Where the
runtime, not the idea, is why nothing was tried, the reward is `None`: such a sample is masked,
never counted as 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from mle_ideator.idea_form import well_formed
from mle_ideator.types import Execute, Idea, Score, SeekHelp, Solution, Step

IdeaOutcome = Literal[
    "improved", "not_improved", "exec_failed", "timeout", "invalid_format", "infra_error"
]

REWARDS: dict[IdeaOutcome, float | None] = {
    "improved": 1.0,
    "not_improved": 0.0,
    "exec_failed": 0.0,
    "timeout": 0.0,
    "invalid_format": -1.0,
    "infra_error": None,
}

# An ideator may decline; what is not well-formed is invalid; anything else is the runtime's fault.
_WITHOUT_IDEA: dict[str, IdeaOutcome] = {
    "no_idea": "not_improved",
    "malformed_idea": "invalid_format",
}


class IdeaReward(NamedTuple):
    """What one help request brought."""

    step: int
    """Number of the help request's step."""
    idea: Idea | None
    outcome: IdeaOutcome
    reward: float | None
    before: Score | None = None
    """The best score before it."""
    after: Score | None = None
    """Of the solution that followed it."""
    improved: bool = False
    """Is that better, by `min_delta`? Also where there was no idea."""


def idea_rewards(
    steps: Sequence[Step], solutions: Sequence[Solution], min_delta: float = 0.0
) -> list[IdeaReward]:
    """The reward of each answered help request, in the order of the session.

    Scores are the public ones, or the solutions' own validation scores if any solution lacks a
    public one; they are never mixed. Only a gain of more than `min_delta` counts.
    """
    scores = _scores(solutions)
    requests = [i for i, step in enumerate(steps) if isinstance(step.action, SeekHelp)]
    rewards = []
    for start, end in pairwise([*requests, len(steps)]):
        step, then = steps[start], steps[start + 1 : end]
        before = _best(scores[s.number] for s in solutions if s.step < step.number)
        made = next((s.solution for s in then if s.solution is not None), None)
        after = None if made is None else scores.get(made)
        improved = after is not None and after.better_than(before, min_delta)
        outcome = without_trying(step.idea, step.observation.status)
        if outcome is None and made is None:
            outcome = _fruitless(then)
        elif outcome is None:
            outcome = "improved" if improved else "not_improved"
        reward = REWARDS[outcome]
        rewards.append(IdeaReward(step.number, step.idea, outcome, reward, before, after, improved))
    return rewards


def best_score(solutions: Sequence[Solution]) -> Score | None:
    """The best one that rewards go by."""
    return _best(_scores(solutions).values())


def without_trying(idea: Idea | None, status: str) -> IdeaOutcome | None:
    """What an answer comes to that is not carried out; `None` for an idea that is.

    `status` is the observation's that follows the help request.
    """
    if idea is None:
        return _WITHOUT_IDEA.get(status, "infra_error")
    return None if well_formed(idea) else "invalid_format"


def _fruitless(after: Sequence[Step]) -> IdeaOutcome:
    """Why no solution came of an idea."""
    executed = [step for step in after if isinstance(step.action, Execute)]
    if not executed:
        return "infra_error"
    return "timeout" if executed[-1].observation.status == "timeout" else "exec_failed"


def _scores(solutions: Sequence[Solution]) -> dict[int, Score | None]:
    public = all(solution.scores.public for solution in solutions)
    return {s.number: s.scores.public if public else s.scores.validation for s in solutions}


def _best(scores: Iterable[Score | None]) -> Score | None:
    best: Score | None = None
    for score in scores:
        if score is not None and score.better_than(best):
            best = score
    return best
