"""What the offline ideator understands of a help state, read from its text as a model would.

The data profile stands in an observation, the recipe in a solution's code, what was tried in the
ideas given earlier. Code that some other implementer wrote has no recipe line: then the operations
that it names and the classes that it uses have to do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from mle_ideator.ideators.offline.facts import Attempt, Reading
from mle_ideator.operations import OPERATIONS, mentioned
from mle_ideator.recipes import Profile, profile_in, recipe_in
from mle_ideator.types import (
    Execute,
    HelpState,
    Idea,
    Score,
    Situation,
    Solution,
    Step,
)

_MOST_CODE = 100_000
_MARKERS = {
    "model_linear": r"\b(?:Ridge|Lasso|ElasticNet|LinearRegression|LogisticRegression|SGD[CR])",
    "model_forest": r"\b(?:RandomForest|ExtraTrees)",
    "model_boosting": r"\b(?:\w*GradientBoosting|LGBM|XGB|CatBoost)",
    "model_neighbours": r"\bKNeighbors",
    "model_kernel": r"\b(?:Linear|Nu)?SV[CR]\(",
    "model_network": r"\bMLP(?:Classifier|Regressor)",
    "target_log": r"\blog1p\b",
    "target_encoding": r"\bTargetEncoder",
    "impute_missing": r"\b(?:Simple|KNN|Iterative)Imputer",
    "interactions": r"\bPolynomialFeatures",
    "lag_features": r"\.shift\(",
    "rolling_features": r"\.rolling\(",
    "text_words": r"\b(?:Tfidf|Count|Hashing)Vectorizer",
    "text_characters": r"analyzer\s*=\s*[\"']char",
    "text_svd": r"\bTruncatedSVD",
    "pca": r"\bPCA\(",
    "class_weights": r"\bclass_weight\s*=\s*[\"'{]",
    "validate_by_group": r"\bGroup\w*Fold",
    "validate_by_time": r"\bTimeSeriesSplit",
    "tune": r"\b(?:RandomizedSearchCV|GridSearchCV|optuna)\b",
    "blend": r"\bVoting(?:Classifier|Regressor)",
    "stack": r"\bStacking(?:Classifier|Regressor)",
    "calibrate": r"\bCalibratedClassifier",
}


def read(state: HelpState) -> Reading:
    """Everything that ranking needs to know."""
    situation = state.situation
    best = situation.best_solution
    current = _current(situation)
    kind = _guiding_score(situation)
    base, astray = _where_to_build(situation, current, best, kind)
    asked = sum(step.idea is not None for step in situation.trajectory)
    statuses = [step.observation.status for step in situation.trajectory]
    return Reading(
        task=situation.task,
        metric=re.sub(r"[^a-z0-9]", "", situation.task.metric.name.lower()),
        profile=_profile(situation.trajectory),
        base=base,
        recipe=operations_in(base.code if base else situation.code),
        astray=astray,
        score=_score(base, kind) if base else None,
        attempts=tuple(_attempts(situation, kind)),
        known_recipes=tuple(operations_in(s.code) for s in situation.solutions),
        progress=asked / max(1, asked + _ideas_left(situation)),
        seconds=situation.remaining.step_seconds,
        slow="timeout" in statuses,
        gap=_gap(base) if base else 0.0,
        seed=situation.seed,
    )


@lru_cache(maxsize=64)
def operations_in(code: str | None) -> frozenset[str]:
    """The operations of a solution: its recipe, or what its code names and uses.

    Of code without a recipe the first 100,000 characters are read.
    """
    recipe = recipe_in(code)
    if recipe is not None:
        return frozenset(recipe.operations) & OPERATIONS.keys()
    text = (code or "")[:_MOST_CODE]
    used = {name for name, marker in _MARKERS.items() if re.search(marker, text)}
    return frozenset(used | {n for n, known in OPERATIONS.items() if known.pattern.search(text)})


def _ideas_left(situation: Situation) -> int:
    """Each idea takes a step to ask for it and one to carry it out."""
    return max(0, min(situation.remaining.help_requests, situation.remaining.steps // 2))


def _profile(trajectory: Sequence[Step]) -> Profile | None:
    found = (profile_in(step.observation.text) for step in reversed(trajectory))
    return next((profile for profile in found if profile), None)


def _current(situation: Situation) -> Solution | None:
    """The latest solution whose code stands in the workspace."""
    same = [s for s in situation.solutions if s.code == situation.code]
    return same[-1] if same else None


def _where_to_build(
    situation: Situation, current: Solution | None, best: Solution | None, kind: str
) -> tuple[Solution | None, str]:
    """The solution to build on, and why the workspace has to go back to it."""
    if best is None or situation.code in (best.code, None):
        return best or current, ""
    if current is None:
        return best, "the code in the workspace has brought no valid submission"
    now, then = _score(current, kind), _score(best, kind)
    if now is not None and now.better_than(then):
        return current, ""
    return best, (
        f"solution #{current.number} scores {_said(now)}, no better than #{best.number} "
        f"with {_said(then)}"
    )


def _said(score: Score | None) -> str:
    return "nothing" if score is None else str(score)


def _guiding_score(situation: Situation) -> str:
    """The score by which the session chooses its best, as far as one can tell from that choice."""
    best = situation.best_solution
    for kind in ("validation", "public"):
        top = _score(best, kind) if best else None
        rest = (_score(s, kind) for s in situation.solutions)
        # Equal within the task's least gain counts as chosen.
        if top and not any(s and s.better_than(top, situation.task.min_delta) for s in rest):
            return kind
    return "validation"


def _score(solution: Solution, kind: str) -> Score | None:
    scores = solution.scores
    return scores.public if kind == "public" else scores.validation


def _attempts(situation: Situation, kind: str) -> list[Attempt]:
    """Each idea so far with the steps up to the next one."""
    steps = situation.trajectory
    asked = [i for i, step in enumerate(steps) if step.idea is not None]
    return [
        _attempt(situation, steps[start].number, idea, steps[start + 1 : end], kind)
        for start, end in pairwise([*asked, len(steps)])
        if (idea := steps[start].idea) is not None
    ]


def _attempt(
    situation: Situation, step: int, idea: Idea, after: Sequence[Step], kind: str
) -> Attempt:
    earlier = [s for s in situation.solutions if s.step < step]
    numbers = {s.solution for s in after}
    made = next((s for s in situation.solutions if s.number in numbers), None)
    scores = [score for s in earlier if (score := _score(s, kind))]
    asked = _asked_for(idea)
    return Attempt(
        operations=asked,
        refused=asked - operations_in(made.code) if made and recipe_in(made.code) else frozenset(),
        bases=tuple(operations_in(s.code) for s in _bases(idea, earlier, scores, kind)),
        failed=made is None,
        untried=not any(isinstance(s.action, Execute) for s in after),
        before=_best(scores),
        after=_score(made, kind) if made else None,
    )


def _asked_for(idea: Idea) -> frozenset[str]:
    verbatim = {name for name, known in OPERATIONS.items() if known.action in idea.action}
    return frozenset(verbatim | {operation.name for operation in mentioned(idea.action)})


def _bases(
    idea: Idea, earlier: Sequence[Solution], scores: Sequence[Score], kind: str
) -> list[Solution]:
    """The solution an idea names, or the last and the best one: an implementer may go back."""
    if idea.reverts_to is not None:
        return [s for s in earlier if s.number == idea.reverts_to]
    top = _best(scores)
    return [*earlier[-1:], *(s for s in earlier if top and _score(s, kind) == top)]


def _best(scores: Sequence[Score]) -> Score | None:
    best: Score | None = None
    for score in scores:
        if score.better_than(best):
            best = score
    return best


def _gap(solution: Solution) -> float:
    said, graded = solution.scores.validation, solution.scores.public
    if said is None or graded is None:
        return 0.0
    gap = said.value - graded.value if said.higher_is_better else graded.value - said.value
    return gap / max(abs(graded.value), 1e-9)
