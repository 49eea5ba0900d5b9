"""What the implementer does of its own accord: a simple first model, one other, and then little.

It is modest on purpose. What would help on which data is the ideator's knowledge, not this.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from mle_ideator.implementers.offline.editing import with_operation
from mle_ideator.implementers.offline.history import History
from mle_ideator.implementers.offline.shape import Shape
from mle_ideator.recipes import Recipe

FAMILIES = ("model_forest", "model_linear", "model_neighbours", "model_network", "model_boosting")


def first_recipe(shape: Shape, seed: int) -> Recipe:
    """A linear model on what the files show, validated as the test rows are drawn."""
    operations = ["model_linear"]
    if shape.columns("text"):
        operations.append("text_words")
    if shape.forecasts:
        operations.append("validate_by_time")
    elif shape.profile.group:
        operations.append("validate_by_group")
    return Recipe(operations=tuple(operations), seed=seed)


def _base(history: History, shape: Shape) -> Recipe:
    return history.base or first_recipe(shape, history.situation.seed)


def own_next(history: History, shape: Shape) -> Recipe | None:
    """The second model that anyone would try; `None` once it was tried."""
    boosted = with_operation(_base(history, shape), "model_boosting")
    tried = any(attempt.recipe.model == "model_boosting" for attempt in history.attempts)
    return None if tried else boosted


def generic_next(history: History, shape: Shape) -> tuple[Recipe, str] | None:
    """The next untried thing that takes no insight: seed, folds, families in a fixed order."""
    ways = _generic(_base(history, shape))
    return next(((recipe, words) for recipe, words in ways if not history.tried(recipe)), None)


def _generic(base: Recipe) -> Iterator[tuple[Recipe, str]]:
    yield msgspec.structs.replace(base, seed=base.seed + 1), "another seed"
    yield msgspec.structs.replace(base, folds=8), "more folds"
    for family in FAMILIES:
        yield with_operation(base, family), f"another model ({family})"


def simpler(failed: Recipe, base: Recipe | None, timed_out: bool) -> tuple[Recipe, str] | None:
    """One try to mend a failed recipe: fewer rows if it was too slow, else one operation less."""
    if timed_out:
        if failed.sample is not None:
            return None
        return msgspec.structs.replace(failed, sample=3000, folds=3), "on 3000 rows at most"
    known = base.operations if base else ()
    new = [name for name in failed.operations if name not in known]
    droppable = [name for name in new if not name.startswith("model_")]
    if not droppable or len(new) < 2:
        return None
    kept = tuple(name for name in failed.operations if name != droppable[-1])
    return msgspec.structs.replace(failed, operations=kept), f"without {droppable[-1]}"
