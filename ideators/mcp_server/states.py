"""From what a foreign agent tells to a help state, the same that an ideator gets in a session.

Where nothing was told, something has to be assumed: `ASSUMED`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from mle_ideator.ideators.mcp_server.arguments import Arguments, Attempt
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
    Value,
)

_UNTOLD = "(not handed over)"
_OF_CLASSES = re.compile(
    r"accuracy|f1|auc|log.?loss|entropy|kappa|matthews|precision|recall|brier|gini|jaccard|hamming"
    r"|error.?rate|misclassif|top.?(?:k|\d)|ndcg"
    r"|(?<![a-z])(?:acc|mcc|roc|qwk|m?iou|dice|m?ap)(?![a-z])",  # parts of other words, too
    re.IGNORECASE,
)
_OF_PROBABILITIES = re.compile(
    r"auc|log.?loss|entropy|brier|gini|average.?precision|(?<![a-z])roc(?![a-z])", re.IGNORECASE
)
_OF_NUMBERS = re.compile(
    r"rms|msl?e|mae|mape|absolute|squared|deviance|pinball|quantile|pearson|spearman|explained"
    r"|(?<![a-z])r.?2(?!\d)",
    re.IGNORECASE,
)
_ABOUT_CLASSES = re.compile(r"\bclassif|\bdetect|\brecogni[sz]", re.IGNORECASE)


class Assumed(Value, frozen=True):
    """What stands in a help state where the agent told nothing."""

    steps: int = 20
    help_requests: int = 10
    minutes: float = 60.0
    cores: int = 2
    memory_gib: float = 8.0
    test_share: float = 0.25
    """Test rows for each training row."""


ASSUMED = Assumed()


def help_state(told: Arguments) -> HelpState:
    """The help state that an agent's words describe.

    Entry k of the history becomes solution #k if it has a score, so that *revert to #k* means the
    same to both sides.
    """
    metric = Metric(told.metric, told.higher_is_better)
    history = _with_current_code(told)
    steps = _steps(history, told.log)
    solutions = _solutions(history, steps, metric)
    situation = Situation(
        task=_task(told, metric),
        trajectory=tuple(steps),
        solutions=tuple(solutions),
        best=_best(solutions),
        code=told.code or (history[-1].code if history else None),
        remaining=_remaining(told),
        sandbox=_sandbox(told),
        seed=0,
    )
    return HelpState(situation, HelpRequest(told.problem, told.attempts, told.goal))


def _with_current_code(told: Arguments) -> Sequence[Attempt]:
    """The history, where the current solution and the last attempt stand in for each other."""
    if not told.history or told.code is None or told.history[-1].code is not None:
        return told.history
    last = msgspec.structs.replace(told.history[-1], code=told.code)
    return (*told.history[:-1], last)


# -------------------------------------------------------------------------- what was done


def _steps(history: Sequence[Attempt], log: str | None) -> list[Step]:
    """Each attempt, the idea that led to it before it, and the latest output at the end."""
    steps: list[Step] = []
    for number, attempt in enumerate(history, 1):
        if attempt.idea:
            steps.append(_advised(len(steps) + 1, attempt.idea))
        steps.append(_tried(len(steps) + 1, attempt, number))
    if log:
        steps.append(_seen(len(steps) + 1, log))
    return steps


def _advised(step: int, action: str) -> Step:
    return Step(
        number=step,
        action=SeekHelp(HelpRequest(_UNTOLD, _UNTOLD, _UNTOLD)),
        observation=Observation(text=action, status="idea"),
        idea=Idea(f"Refine: {_UNTOLD}", action, _UNTOLD),
    )


def _tried(step: int, attempt: Attempt, number: int) -> Step:
    scored = attempt.score is not None
    said = f"Validation score: {attempt.score:.6g}" if scored else "It gave no score."
    return Step(
        number=step,
        thought=attempt.what,
        action=Execute("python", attempt.code or _comment(attempt)),
        observation=Observation(text=said, status="ok" if scored else "error"),
        solution=number if scored else None,
    )


def _seen(step: int, log: str) -> Step:
    failed = "Traceback (most recent call last)" in log
    return Step(
        number=step,
        thought="The latest output.",
        action=Execute("python", f"# {_UNTOLD}"),
        observation=Observation(text=log, status="error" if failed else "ok"),
    )


def _solutions(history: Sequence[Attempt], steps: Sequence[Step], metric: Metric) -> list[Solution]:
    return [
        Solution(
            number=step.solution,
            step=step.number,
            code=attempt.code or _comment(attempt),
            scores=Scores(validation=metric.score(attempt.score)),
            digest="",
        )
        for step in steps
        if step.solution is not None
        for attempt in (history[step.solution - 1],)
    ]


def _comment(attempt: Attempt) -> str:
    """What stands for code that was not handed over: the words for it, as Python."""
    lines = (f"# {line}" for line in [f"{_UNTOLD} What it did:", *attempt.what.splitlines()])
    return "\n".join(lines) + "\n"


def _best(solutions: Sequence[Solution]) -> int | None:
    best: Solution | None = None
    for solution in solutions:
        score = solution.scores.validation
        if score and score.better_than(best.scores.validation if best else None):
            best = solution
    return best.number if best else None


# ---------------------------------------------------------------------- what it is about


def _task(told: Arguments, metric: Metric) -> Task:
    kind = told.task_type or f"tabular-{_problem(told)}"
    return Task(
        id="handed-over",
        title=told.task.strip().splitlines()[0].lstrip("# ")[:100],
        description=told.task,
        type=kind,
        split="own",
        metric=metric,
        id_column="",
        targets=(told.target or "target",),
        prediction=_prediction(told.metric, kind),
        rows=(told.train_rows, told.test_rows or math.ceil(told.train_rows * ASSUMED.test_share)),
        source="",
        licence="",
        inputs="",
    )


def _problem(told: Arguments) -> Literal["classification", "regression"]:
    """By the metric's name, and where that says nothing by the task."""
    if _OF_CLASSES.search(told.metric):
        return "classification"
    if _OF_NUMBERS.search(told.metric) or not _ABOUT_CLASSES.search(told.task):
        return "regression"
    return "classification"


def _prediction(metric: str, kind: str) -> Literal["value", "label", "probability"]:
    if _OF_PROBABILITIES.search(metric):
        return "probability"
    return "label" if _OF_CLASSES.search(metric) or "classif" in kind else "value"


# ------------------------------------------------------------------------- what there is


def _remaining(told: Arguments) -> Remaining:
    seconds = 60.0 * (told.minutes_left or ASSUMED.minutes)
    return Remaining(
        steps=ASSUMED.steps,
        help_requests=ASSUMED.help_requests,
        seconds=seconds,
        step_seconds=seconds,
    )


def _sandbox(told: Arguments) -> SandboxInfo:
    return SandboxInfo(
        kind="the agent's own",
        python=told.python or _UNTOLD,
        libraries=dict(map(_library, told.libraries)),
        cores=told.cores or ASSUMED.cores,
        memory_gib=told.memory_gib or ASSUMED.memory_gib,
        network=False,
    )


def _library(text: str) -> tuple[str, str]:
    """Name and version, as `pip list` or a requirement writes them."""
    name, _, version = re.sub(r"\s*==\s*|\s+", " ", text.strip()).partition(" ")
    return name, version
