"""Help states made by hand, so that each test says only what matters to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from mle_ideator.recipes import Column, Profile, Recipe
from mle_ideator.types import (
    Execute,
    HelpRequest,
    HelpState,
    Idea,
    Metric,
    Observation,
    Remaining,
    SandboxInfo,
    Scores,
    SeekHelp,
    Situation,
    Solution,
    Step,
    Task,
)

REQUEST = HelpRequest(problem="The score stalls.", attempts="One model.", goal="A better score.")
SANDBOX = SandboxInfo(
    kind="local", python="3.11", libraries={}, cores=2, memory_gib=8.0, network=False
)


def a_task(metric: str = "rmse", higher: bool = False, **changes: Any) -> Task:
    fields: dict[str, Any] = {
        "id": "t",
        "title": "A task",
        "description": "Predict y.",
        "type": "tabular-regression",
        "split": "test",
        "metric": Metric(metric, higher),
        "id_column": "id",
        "targets": ("y",),
        "prediction": "value",
        "rows": (5000, 2000),
        "source": "made",
        "licence": "CC0",
        "inputs": "input",
    }
    return Task(**(fields | changes))


def a_profile(*columns: Column, skew: float | None = 0.1, low: float = 0.0, **rest: Any) -> Profile:
    target = Column(name="y", kind="number", levels=900, missing=0.0, skew=skew, low=low)
    fields: dict[str, Any] = {"rows": 5000, "test_rows": 2000, "targets": (target,)}
    return Profile(columns=columns, **(fields | rest))


def code_of(*operations: str) -> str:
    return Recipe(operations=operations).line() + "\nprint('a solution')\n"


class Story:
    """A session told step by step; `state()` is the help state at its end."""

    def __init__(self, task: Task, profile: Profile | None = None, seed: int = 0) -> None:
        self.task, self.seed = task, seed
        self.steps: list[Step] = []
        self.solutions: list[Solution] = []
        self.code: str | None = None
        self.cell(profile.line() if profile else "nothing to see")

    def cell(self, text: str = "", status: Any = "ok", solution: int | None = None) -> Story:
        self._step(Execute("python", "..."), Observation(text=text, status=status), None, solution)
        return self

    def solved(self, code: str, validation: float | None, public: float | None = None) -> Story:
        number, metric = len(self.solutions) + 1, self.task.metric
        scores = Scores(metric.score(validation), metric.score(public))
        step = len(self.steps) + 1
        self.solutions.append(
            Solution(number=number, step=step, code=code, scores=scores, digest=str(number))
        )
        self.code = code
        return self.cell(f"Validation score: {validation}", solution=number)

    def idea(self, action: str, analysis: str = "Refine: go on.") -> Story:
        idea = Idea(analysis, action, "It should help.")
        self._step(SeekHelp(REQUEST), Observation(text="...", status="idea"), idea, None)
        if idea.reverts_to:
            self.code = self.solutions[idea.reverts_to - 1].code
        return self

    def _step(
        self, action: Any, observation: Observation, idea: Idea | None, solution: int | None
    ) -> None:
        number = len(self.steps) + 1
        self.steps.append(
            Step(
                number=number, action=action, observation=observation, idea=idea, solution=solution
            )
        )

    def state(self, help_requests: int = 5, seconds: float = 600.0) -> HelpState:
        remaining = Remaining(
            steps=40, help_requests=help_requests, seconds=3600.0, step_seconds=seconds
        )
        situation = Situation(
            task=self.task,
            trajectory=tuple(self.steps),
            solutions=tuple(self.solutions),
            best=self._best(),
            code=self.code,
            remaining=remaining,
            sandbox=SANDBOX,
            seed=self.seed,
        )
        return HelpState(situation, REQUEST)

    def _best(self) -> int | None:
        scored: Sequence[Solution] = [s for s in self.solutions if s.scores.validation]
        if not scored:
            return self.solutions[0].number if self.solutions else None
        sign = -1 if self.task.metric.higher_is_better else 1
        return min(scored, key=lambda s: sign * s.scores.validation.value).number  # type: ignore[union-attr]


@pytest.fixture(scope="session")
def story() -> Callable[..., Story]:
    return Story


@pytest.fixture(scope="session")
def task() -> Callable[..., Task]:
    return a_task


@pytest.fixture(scope="session")
def profile() -> Callable[..., Profile]:
    return a_profile


@pytest.fixture(scope="session")
def code() -> Callable[..., str]:
    return code_of
