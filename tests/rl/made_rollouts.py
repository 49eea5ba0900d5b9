"""Rollouts in memory, whose results follow from help state, idea and seed; ideators for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from random import Random

from mle_ideator.errors import AgentError, SandboxError, UsageError
from mle_ideator.idea_form import well_formed
from mle_ideator.rl.reward import REWARDS, IdeaOutcome
from mle_ideator.rl.values import Kind, RolloutJob, RolloutResult, StateCard
from mle_ideator.types import (
    HelpRequest,
    HelpState,
    Idea,
    Metric,
    Proposal,
    Remaining,
    SandboxInfo,
    Score,
    Scores,
    Situation,
    Solution,
    Task,
    Usage,
)

BREAKS = "Break the sandbox."
CHANCES = {"Use gradient boosting.": 0.8, "Add ratios as features.": 0.5, "Try harder.": 0.1}
"""How often an idea improves; any other one never does."""


def idea(action: str) -> Idea:
    return Idea("Refine: go on.", action, "It should help.")


def answer(action: str) -> str:
    """The idea as a model writes it."""
    return (
        "<analysis>Refine: go on.</analysis>\n"
        f"<action>{action}</action>\n<rationale>It should help.</rationale>"
    )


def card(number: int, task: str = "a", kind: Kind = "improve") -> StateCard:
    score = None if kind == "draft" else Score(1.0, False)
    return StateCard(
        id=f"{task}{number:04d}",
        task=task,
        kind=kind,
        steps=3,
        score=score,
        collected_at="2026-01-01T00:00:00+00:00",
    )


def cards(number: int, tasks: Sequence[str] = ("a", "b", "c")) -> list[StateCard]:
    kinds: tuple[Kind, ...] = ("draft", "debug", "improve", "improve", "improve")
    return [card(i, tasks[i % len(tasks)], kinds[i % len(kinds)]) for i in range(number)]


def help_state(task: str) -> HelpState:
    metric = Metric("rmse", False)
    solution = Solution(
        number=1, step=2, code="print(1)", scores=Scores(Score(1.0, False)), digest="d"
    )
    situation = Situation(
        task=Task(
            id=task, title="A task", description="Predict y – äöü.", type="tabular-regression",
            split="test", metric=metric, id_column="id", targets=("y",), prediction="value",
            rows=(100, 50), source="made", licence="CC0", inputs="input",
        ),
        trajectory=(), solutions=(solution,), best=1, code="print(1)",
        remaining=Remaining(steps=9, help_requests=3, seconds=900.0, step_seconds=60.0),
        sandbox=SandboxInfo(
            kind="local", python="3.11", libraries={}, cores=2, memory_gib=8.0, network=False
        ),
        seed=0,
    )  # fmt: skip
    return HelpState(situation, HelpRequest("It stalls.", "One model.", "A better score."))


class MadeRollouts:
    """Each job takes `latency_s`; `jobs` are those that were run."""

    def __init__(self, states: Sequence[StateCard], latency_s: float = 0.0) -> None:
        self._cards = {card.id: card for card in states}
        self._latency_s = latency_s
        self.jobs: list[RolloutJob] = []
        self.at_once = self.most_at_once = 0

    async def run(self, job: RolloutJob) -> RolloutResult:
        self.jobs.append(job)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(self._latency_s)
            return self._result(job)
        finally:
            self.at_once -= 1

    def help_state(self, id: str) -> HelpState:
        if id not in self._cards:
            raise UsageError(f"there is no help state {id}.")
        return help_state(self._cards[id].task)

    def card(self, id: str) -> StateCard:
        return self._cards[id]

    def cards(self) -> Sequence[StateCard]:
        return list(self._cards.values())

    def _result(self, job: RolloutJob) -> RolloutResult:
        outcome, after = self._outcome(job)
        return RolloutResult(
            state=job.state,
            idea=job.proposal.idea,
            seed=job.seed,
            outcome=outcome,
            reward=REWARDS[outcome],
            before=self._cards[job.state].score,
            after=after,
            improved=after is not None and after.better_than(Score(1.0, False)),
            seconds=2.0,
        )

    def _outcome(self, job: RolloutJob) -> tuple[IdeaOutcome, Score | None]:
        proposal = job.proposal
        if proposal.malformed:
            return "invalid_format", None
        if proposal.idea is None:  # the implementer may find something by itself
            alone = Random(f"{job.state}:{job.seed}").random() < 0.2
            return "not_improved", Score(0.95, False) if alone else None
        if not well_formed(proposal.idea):
            return "invalid_format", None
        if proposal.idea.action == BREAKS:
            raise SandboxError("the sandbox is gone")
        action = proposal.idea.action
        luck = Random(f"{job.state}:{action}:{job.seed}").random()
        better = luck < CHANCES.get(action, 0.0)
        return ("improved", Score(0.9, False)) if better else ("not_improved", Score(1.1, False))


class Says:
    """Answers each help state with what a function makes of it."""

    def __init__(self, make: Callable[[HelpState], Proposal]) -> None:
        self._make = make
        self.seeds: list[int] = []

    async def propose(self, state: HelpState) -> Proposal:
        self.seeds.append(state.situation.seed)
        return self._make(state)


def saying(action: str) -> Says:
    return Says(lambda state: Proposal(idea(action), usage=Usage(1, 10, 0, 5)))


def rubbish() -> Says:
    return Says(lambda state: Proposal(None, "no tags", malformed=True))


def lost() -> Says:
    def fail(state: HelpState) -> Proposal:
        raise AgentError("the server is gone")

    return Says(fail)
