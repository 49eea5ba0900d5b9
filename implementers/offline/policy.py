"""The offline implementer: look at the data, try two models, then seek help and carry it out.

Every decision is a function of the situation. The order of the questions in `decide` is the
whole policy.
"""

from __future__ import annotations

import msgspec

from mle_ideator.implementers.offline import wording
from mle_ideator.implementers.offline.cells import profile_cell, solution_cell
from mle_ideator.implementers.offline.editing import changed
from mle_ideator.implementers.offline.history import Attempt, History
from mle_ideator.implementers.offline.repertoire import (
    first_recipe,
    generic_next,
    own_next,
    simpler,
)
from mle_ideator.implementers.offline.shape import Shape
from mle_ideator.implementers.offline.understanding import gist, understand
from mle_ideator.implementers.offline.writing import solution_code
from mle_ideator.recipes import Recipe
from mle_ideator.types import Decision, Execute, Finish, Idea, SeekHelp, Situation

LOOKS = 2
"""How often the data is looked at before giving up."""
RESERVE_S = 5.0
"""Seconds that are kept for the end of the session."""
SHORT_CELL_S = 20.0
"""Below this, a cell can only run a solution that learns from a sample."""


class OfflineImplementer:
    """An acting agent without a model: rules, a generator of solutions, and a little reading.

    It needs nothing but the situation, and is deterministic by its seed.
    """

    async def act(self, situation: Situation) -> Decision:
        return decide(History(situation))

    def gist(self, idea: Idea) -> str:
        return gist(idea)


def decide(history: History) -> Decision:
    if _out_of_time(history):
        return Decision(Finish("the time left is too short for another solution"))
    shape = history.shape
    if shape is None:
        return _look(history)
    if not history.attempts:
        recipe = first_recipe(shape, history.situation.seed)
        return _attempt(history, shape, recipe, wording.first(shape))
    failed = history.last_attempt
    if failed and failed.failed:
        mended = _mend(history, shape, failed)
        if mended:
            return mended
    if history.help_was_sought_last:
        return _carry_out(history, shape, history.pending_idea)
    return _go_on(history, shape)


def _out_of_time(history: History) -> bool:
    longest = max((a.step.observation.duration_s for a in history.attempts), default=0.0)
    return history.situation.remaining.seconds < RESERVE_S + 2 * longest


def _look(history: History) -> Decision:
    looks = sum(isinstance(step.action, Execute) for step in history.situation.trajectory)
    if looks < LOOKS:
        thought = "First I look at the data." if looks == 0 else "No profile came; I look again."
        return Decision(profile_cell(history.situation.task), thought)
    last = history.last.observation.text.strip().splitlines() if history.last else []
    return Decision(Finish(f"the data can not be read: {last[-1] if last else 'no output'}"))


def _attempt(history: History, shape: Shape, recipe: Recipe, thought: str) -> Decision:
    """Write the recipe's solution and run it; on a sample of the rows if cells must be short."""
    if history.situation.remaining.step_seconds < SHORT_CELL_S and recipe.sample is None:
        recipe = msgspec.structs.replace(recipe, sample=3000, folds=3)
        thought += " The cell's time is short, so it learns from 3000 rows at most."
    return Decision(solution_cell(solution_code(recipe, shape)), thought)


def _mend(history: History, shape: Shape, failed: Attempt) -> Decision | None:
    """One try to repair what just failed; none for a repair that failed itself."""
    before = [a for a in history.attempts if a.step.number == failed.step.number - 1]
    if before and before[0].failed:
        return None
    timed_out = failed.step.observation.status in ("timeout", "died")
    mended = simpler(failed.recipe, history.base, timed_out)
    if mended is None or history.tried(mended[0]):
        return None
    thought = f"{wording.failure(failed)} I try it once more {mended[1]}."
    return _attempt(history, shape, mended[0], thought)


def _carry_out(history: History, shape: Shape, idea: Idea | None) -> Decision:
    """Do what the idea asks; where nothing of it can be done, say so and go on without it."""
    if idea is None:
        return _own_way(history, shape, "No idea came.")
    base = history.base or first_recipe(shape, history.situation.seed)
    wish = understand(idea.action, [column.name for column in shape.profile.columns])
    if wish.is_empty:
        return _own_way(history, shape, wording.NOT_UNDERSTOOD)
    change = changed(base, wish, shape)
    if change.is_empty and idea.reverts_to is None:
        return _own_way(history, shape, wording.nothing_to_do(change))
    earlier = history.tried(change.recipe)
    if earlier:
        return _own_way(history, shape, wording.tried_before(change, earlier))
    return _attempt(history, shape, change.recipe, wording.carried_out(idea, change))


def _own_way(history: History, shape: Shape, thought: str) -> Decision:
    """A step without insight; the end if there is none left."""
    found = generic_next(history, shape)
    if found is None:
        return Decision(Finish("nothing that I know is left to try"), thought)
    recipe, words = found
    return _attempt(history, shape, recipe, f"{thought} I go on with my own means: {words}.")


def _go_on(history: History, shape: Shape) -> Decision:
    """The next own model; then help, as long as there is any; then own small steps."""
    outcome = wording.outcome(history)
    recipe = own_next(history, shape)
    if recipe is not None:
        return _attempt(history, shape, recipe, f"{outcome} Next I try gradient boosting.")
    remaining = history.situation.remaining
    may_ask = remaining.help_requests > 0 and remaining.steps >= 2
    if may_ask and not history.last_request_failed:
        return Decision(SeekHelp(wording.help_request(history, shape)), f"{outcome} I seek help.")
    return _own_way(history, shape, outcome)
