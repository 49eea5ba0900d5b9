"""What the offline ideator understands of a help state, read from its text as a model would.

The data profile stands in an observation, the recipe in a solution's code, what was tried in the
ideas given earlier. Code that some other implementer wrote has no recipe line: then the operations
that it names and the classes that it uses have to do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mle_ideator.ideators.offline.codes import made_of, uses_deep_learning
from mle_ideator.ideators.offline.facts import Reading
from mle_ideator.ideators.offline.history import attempts, score_of
from mle_ideator.recipes import Profile, profile_in
from mle_ideator.types import HelpState, Score, Situation, Solution, Step, Task

MOST_SOLUTIONS = 1000
"""Of more solutions the latest ones are read."""
_SENSES = re.compile("vision|video|audio|speech|segmentation|object-detection")


def read(state: HelpState) -> Reading:
    """Everything that ranking needs to know."""
    situation = state.situation
    best = situation.best_solution
    current = _current(situation)
    kind = _guiding_score(situation)
    base, astray = _where_to_build(situation, current, best, kind)
    code = base.code if base else situation.code
    codes = [s.code for s in reversed(situation.solutions[-MOST_SOLUTIONS:])]
    made = made_of([code, *codes])
    recipe = made[code].operations
    profile = _profile(situation.trajectory)
    return Reading(
        task=situation.task,
        metric=re.sub(r"[^a-z0-9]", "", situation.task.metric.name.lower()),
        profile=profile,
        base=base,
        recipe=recipe,
        astray=astray,
        score=score_of(base, kind) if base else None,
        attempts=tuple(attempts(situation, kind, made, recipe)),
        known_recipes=frozenset(made[code].operations for code in codes if code in made),
        deep=_deep(situation.task, profile, code),
        progress=_progress(situation),
        seconds=situation.remaining.step_seconds,
        slow=any(step.observation.status == "timeout" for step in situation.trajectory),
        gap=_gap(base) if base else 0.0,
        seed=situation.seed,
    )


def _progress(situation: Situation) -> float:
    asked = sum(step.idea is not None for step in situation.trajectory)
    return asked / max(1, asked + _ideas_left(situation))


def _ideas_left(situation: Situation) -> int:
    """Each idea takes a step to ask for it and one to carry it out."""
    return max(0, min(situation.remaining.help_requests, situation.remaining.steps // 2))


def _profile(trajectory: Sequence[Step]) -> Profile | None:
    found = (profile_in(step.observation.text) for step in reversed(trajectory))
    return next((profile for profile in found if profile), None)


def _current(situation: Situation) -> Solution | None:
    """The latest solution whose code stands in the workspace."""
    return next((s for s in reversed(situation.solutions) if s.code == situation.code), None)


def _where_to_build(
    situation: Situation, current: Solution | None, best: Solution | None, kind: str
) -> tuple[Solution | None, str]:
    """The solution to build on, and why the workspace has to go back to it."""
    if best is None or situation.code in (best.code, None):
        return best or current, ""
    if current is None:
        return best, "the code in the workspace has brought no valid submission"
    now, then = score_of(current, kind), score_of(best, kind)
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
        top = score_of(best, kind) if best else None
        rest = (score_of(s, kind) for s in situation.solutions)
        # Equal within the task's least gain counts as chosen.
        if top and not any(s and s.better_than(top, situation.task.min_delta) for s in rest):
            return kind
    return "validation"


def _deep(task: Task, profile: Profile | None, code: str | None) -> bool:
    """A profile, or a table by its type, is what every operation is made for."""
    if profile or task.type.startswith(("tabular", "time-series", "forecast")):
        return False
    return bool(_SENSES.search(task.type.lower())) or uses_deep_learning(code)


def _gap(solution: Solution) -> float:
    said, graded = solution.scores.validation, solution.scores.public
    if said is None or graded is None:
        return 0.0
    gap = said.value - graded.value if said.higher_is_better else graded.value - said.value
    return gap / max(abs(graded.value), 1e-9)
