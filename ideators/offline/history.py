"""The ideas of a session and what each brought, in one pass over steps and solutions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from mle_ideator.ideators.offline.codes import Made
from mle_ideator.ideators.offline.facts import Attempt
from mle_ideator.operations import OPERATIONS, mentioned
from mle_ideator.types import Execute, Idea, Score, Situation, Solution, Step

MOST_ATTEMPTS = 500
"""Of more ideas the latest ones count."""
_PIECE = 2_000
_MOST_TEXT = 20_000


def attempts(
    situation: Situation, kind: str, made: Mapping[str | None, Made], recipe: frozenset[str]
) -> Iterator[Attempt]:
    """Each idea so far with the steps up to the next one, for who builds on this recipe.

    `made` says what the solutions are made of, as far as that is known.
    """
    steps, solutions = situation.trajectory, situation.solutions
    asked = [i for i, step in enumerate(steps) if step.idea is not None][-MOST_ATTEMPTS:]
    past = _Past(solutions, kind, made)
    places = {solutions[i].number: i for i in reversed(range(len(solutions)))}
    for start, end in pairwise([*asked, len(steps)]):
        idea, after = steps[start].idea, steps[start + 1 : end]
        if idea is not None:
            past.go_to(steps[start].number)
            made_here = [places[s.solution] for s in after if s.solution in places]
            followed = solutions[min(made_here)] if made_here else None
            yield _attempt(idea, after, followed, past, recipe)


def score_of(solution: Solution, kind: str) -> Score | None:
    scores = solution.scores
    return scores.public if kind == "public" else scores.validation


class _Past:
    """The solutions before a step that only moves on."""

    def __init__(
        self, solutions: Sequence[Solution], kind: str, made: Mapping[str | None, Made]
    ) -> None:
        self.kind = kind
        self.best: Score | None = None
        self._made = made
        self._solutions = sorted(solutions, key=lambda solution: solution.step)
        self._count = 0
        self._recipes: dict[int, frozenset[str] | None] = {}
        """By the solution's number."""
        self._best_recipes: set[frozenset[str] | None] = set()
        self._last: frozenset[str] | None = None

    def go_to(self, step: int) -> None:
        while self._count < len(self._solutions) and self._solutions[self._count].step < step:
            self._add(self._solutions[self._count])
            self._count += 1

    def _add(self, solution: Solution) -> None:
        made, score = self.made_of(solution), score_of(solution, self.kind)
        self._last = self._recipes[solution.number] = made.operations if made else None
        if score is not None and score.better_than(self.best):
            self.best, self._best_recipes = score, set()
        if score is not None and score == self.best:
            self._best_recipes.add(self._last)

    def made_of(self, solution: Solution) -> Made | None:
        return self._made.get(solution.code)

    def may_be_base(self, recipe: frozenset[str], idea: Idea) -> bool:
        """Has the solution that the idea names this recipe, or the last or one of the best?

        An implementer may go back by itself.
        """
        if idea.reverts_to is not None:
            return self._recipes.get(idea.reverts_to) == recipe
        return recipe == self._last or recipe in self._best_recipes


def _attempt(
    idea: Idea,
    after: Sequence[Step],
    followed: Solution | None,
    past: _Past,
    recipe: frozenset[str],
) -> Attempt:
    asked = _asked_for(idea.action[:_MOST_TEXT])
    made = past.made_of(followed) if followed else None
    return Attempt(
        operations=asked,
        refused=asked - made.operations if made and made.by_recipe else frozenset(),
        here=past.may_be_base(recipe, idea),
        failed=followed is None,
        untried=not any(isinstance(step.action, Execute) for step in after),
        before=past.best,
        after=score_of(followed, past.kind) if followed else None,
    )


@lru_cache(maxsize=1024)
def _asked_for(text: str) -> frozenset[str]:
    verbatim = {name for name, known in OPERATIONS.items() if known.action in text}
    pieces = [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]
    return frozenset(verbatim | {o.name for piece in pieces for o in mentioned(piece)})
