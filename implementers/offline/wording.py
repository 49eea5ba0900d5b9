"""What the policy says: plain sentences made of the history, without times of day or durations."""

from __future__ import annotations

from collections.abc import Iterator

from mle_ideator.implementers.offline.editing import Change
from mle_ideator.implementers.offline.history import Attempt, History
from mle_ideator.implementers.offline.shape import Shape
from mle_ideator.recipes import Recipe
from mle_ideator.types import HelpRequest, Idea, Score

NOT_UNDERSTOOD = "The idea names no operation I know: reported as a failed execution."


def first(shape: Shape) -> str:
    text = "I start with a simple linear model."
    if not shape.metric_is_known:
        text += (
            f" I can not compute {shape.task.metric.name} in a script;"
            f" my validation score is {shape.metric} instead."
        )
    return text


def failure(attempt: Attempt) -> str:
    observation = attempt.step.observation
    if observation.status == "timeout":
        return "The attempt took too long."
    if observation.status == "died":
        return "The attempt ended the kernel."
    lines = [line for line in observation.text.strip().splitlines() if line.strip()]
    return f"The attempt failed ({lines[-1].strip()[:200] if lines else 'no output'})."


def outcome(history: History) -> str:
    """What the last attempt brought."""
    attempt = history.last_attempt
    if attempt is None:
        return ""
    if attempt.solution is None or attempt.score is None:
        return f"{failure(attempt)} It is undone."
    number = attempt.solution.number
    if history.best is attempt.solution:
        return f"Solution #{number} scores {attempt.score}, the best so far."
    best = history.best
    there = f"#{best.number} with {best.scores.validation}" if best else "nothing"
    return f"Solution #{number} scores {attempt.score}, no better than {there}: it is undone."


def nothing_to_do(change: Change) -> str:
    return f"Nothing of the idea can be done: reported as a failed execution ({change})."


def tried_before(change: Change, earlier: Attempt) -> str:
    result = f"scored {earlier.score}" if earlier.score else "failed"
    return f"The idea leads to what was tried before and {result} ({change})."


def carried_out(idea: Idea, change: Change) -> str:
    start = f"Back at #{idea.reverts_to}. " if idea.reverts_to is not None else ""
    return f"{start}I carry out the idea; {change or 'nothing else changes'}."


def recipe_text(recipe: Recipe) -> str:
    settings = [f"{name} {value}" for name, value in (("folds", recipe.folds),
                ("sample", recipe.sample)) if value is not None]  # fmt: skip
    settings += [f"seed {recipe.seed}"] if recipe.seed else []
    return ", ".join([*recipe.operations, *settings])


def help_request(history: History, shape: Shape) -> HelpRequest:
    """Problem, attempts and goal, with the scores and what each attempt brought."""
    task, best = history.situation.task, history.best
    where = "No solution is valid yet."
    if best is not None and best.scores.validation is not None:
        recipe = history.base
        made_of = f" ({recipe_text(recipe)})" if recipe else ""
        where = f"The best is #{best.number}{made_of} with {best.scores.validation}."
    direction = "higher" if task.metric.higher_is_better else "lower"
    profile = shape.profile
    return HelpRequest(
        problem=f"{task.title}: {profile.rows} training rows, {len(profile.columns)} columns; "
        f"{shape.metric} in validation, {direction} is better. {where} "
        f"{outcome(history)} My own repertoire is used up.",
        attempts="\n".join(_attempt_lines(history)),
        goal=f"One change that makes the validation {shape.metric} {direction}; "
        f"{history.situation.remaining.steps - 1} steps are left after this.",
    )


def _attempt_lines(history: History) -> Iterator[str]:
    best: Score | None = None
    for attempt in history.attempts:
        made_of, step = recipe_text(attempt.recipe), attempt.step
        if attempt.solution is None or attempt.score is None:
            yield f"- step {step.number}: {made_of}: failed ({step.observation.status})"
            continue
        better = attempt.score.better_than(best)
        verdict = "" if best is None else ", better" if better else ", no better"
        yield f"- #{attempt.solution.number}: {made_of}: {attempt.score}{verdict}"
        best = attempt.score if better else best
