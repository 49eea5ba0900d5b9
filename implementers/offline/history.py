"""What a situation tells of the session so far: profile, attempts, ideas. Nothing is remembered."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import msgspec

from mle_ideator.implementers.offline.shape import Shape
from mle_ideator.operations import OPERATIONS
from mle_ideator.recipes import Profile, Recipe, profile_in, recipe_in
from mle_ideator.types import Execute, Idea, Score, SeekHelp, Situation, Solution, Step


@dataclass(frozen=True)
class Attempt:
    """One run of a generated solution."""

    step: Step
    recipe: Recipe
    solution: Solution | None
    """`None` if it failed."""

    @property
    def score(self) -> Score | None:
        return self.solution.scores.validation if self.solution else None

    @property
    def failed(self) -> bool:
        return self.score is None


@dataclass(frozen=True)
class History:
    situation: Situation

    @cached_property
    def profile(self) -> Profile | None:
        steps = reversed(self.situation.trajectory)
        found = (profile_in(step.observation.text) for step in steps)
        return next((profile for profile in found if profile is not None), None)

    @cached_property
    def shape(self) -> Shape | None:
        return Shape(self.situation.task, self.profile) if self.profile else None

    @cached_property
    def attempts(self) -> tuple[Attempt, ...]:
        by_number = {solution.number: solution for solution in self.situation.solutions}
        found = []
        for step in self.situation.trajectory:
            if isinstance(step.action, Execute):
                recipe = usable(recipe_in(step.action.code))
                if recipe is not None:
                    solution = by_number.get(step.solution) if step.solution else None
                    found.append(Attempt(step, recipe, solution))
        return tuple(found)

    @property
    def last(self) -> Step | None:
        return self.situation.trajectory[-1] if self.situation.trajectory else None

    @property
    def last_attempt(self) -> Attempt | None:
        """The attempt of the last step, if that was one."""
        attempt = self.attempts[-1] if self.attempts else None
        return attempt if attempt and attempt.step is self.last else None

    @property
    def pending_idea(self) -> Idea | None:
        """The idea that the last step brought."""
        return self.last.idea if self.last and isinstance(self.last.action, SeekHelp) else None

    @property
    def help_was_sought_last(self) -> bool:
        return self.last is not None and isinstance(self.last.action, SeekHelp)

    @property
    def last_request_failed(self) -> bool:
        """Did the latest help request bring no idea?"""
        requests = [s for s in self.situation.trajectory if isinstance(s.action, SeekHelp)]
        return bool(requests) and requests[-1].idea is None

    @cached_property
    def best(self) -> Solution | None:
        """The best solution by validation score; the earlier one of equals."""
        best: Solution | None = None
        for solution in self.situation.solutions:
            score = solution.scores.validation
            if score and score.better_than(best.scores.validation if best else None):
                best = solution
        return best

    @property
    def base(self) -> Recipe | None:
        """The recipe to build on: the best solution's, or that which an idea went back to."""
        idea = self.pending_idea
        if idea and idea.reverts_to is not None:
            return usable(recipe_in(self.situation.code)) or self._best_recipe
        return self._best_recipe

    @property
    def _best_recipe(self) -> Recipe | None:
        return usable(recipe_in(self.best.code if self.best else None))

    def tried(self, recipe: Recipe) -> Attempt | None:
        """The earlier attempt with the same recipe; the order of operations does not matter."""
        return next((a for a in self.attempts if same(a.recipe, recipe)), None)


def usable(recipe: Recipe | None) -> Recipe | None:
    """The recipe, if it has one model and only known operations: others may have written it."""
    if recipe is None or not set(recipe.operations) <= OPERATIONS.keys():
        return None
    models = [name for name in recipe.operations if name.startswith("model_")]
    return recipe if len(models) == 1 else None


def same(a: Recipe, b: Recipe) -> bool:
    """Are these the same but for the order of their operations?"""
    ordered = msgspec.structs.replace(a, operations=b.operations)
    return ordered == b and set(a.operations) == set(b.operations)
