"""Changes a recipe as an idea asks, as far as the operations apply to the data."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from mle_ideator.implementers.offline.applicability import obstacle
from mle_ideator.implementers.offline.shape import Shape
from mle_ideator.implementers.offline.understanding import Understanding
from mle_ideator.recipes import Recipe

EXCLUSIVE = (("blend", "stack"), ("more_regularisation", "more_capacity"))
"""Of each of these a recipe has one at most; the later one wins."""


@dataclass
class Change:
    """A new recipe, and what became of each operation that was asked for."""

    recipe: Recipe
    taken: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    settings: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    """Reason by operation."""

    @property
    def is_empty(self) -> bool:
        return not (self.taken or self.removed or self.settings)

    def __str__(self) -> str:
        parts = [f"taken: {', '.join(self.taken)}"] if self.taken else []
        parts += [f"removed: {', '.join(self.removed)}"] if self.removed else []
        parts += [f"set: {', '.join(self.settings)}"] if self.settings else []
        parts += [f"not {name}: {reason}" for name, reason in self.refused.items()]
        return "; ".join(parts)


def changed(base: Recipe, wish: Understanding, shape: Shape) -> Change:
    """The base with what the wish adds and removes; models are settled first, others build on."""
    change = Change(base)
    _remove(change, wish)
    models = [name for name in wish.add if name.startswith("model_")]
    if len(models) > 1 and {"blend", "stack"} & {*wish.add, *base.operations}:
        _name_members(change, models)
    else:
        for name in models[:1]:
            _add(change, name, shape)
        change.refused |= dict.fromkeys(models[1:], "a solution has one model, unless it blends")
    for name in wish.add:
        if name not in models:
            _add(change, _meant(name, shape), shape)
    _set(change, wish)
    return change


def with_operation(recipe: Recipe, name: str) -> Recipe:
    """The recipe with one more operation; what excludes it goes."""
    rivals = {rival for pair in EXCLUSIVE if name in pair for rival in pair}
    if name.startswith("model_"):
        rivals |= {other for other in recipe.operations if other.startswith("model_")}
    kept = tuple(other for other in recipe.operations if other not in rivals | {name})
    return msgspec.structs.replace(recipe, operations=(*kept, name))


def without_operation(recipe: Recipe, name: str) -> Recipe:
    kept = tuple(other for other in recipe.operations if other != name)
    return msgspec.structs.replace(recipe, operations=kept)


def _name_members(change: Change, models: list[str]) -> None:
    """Several models that are to be combined: they are its members, none takes another's place."""
    if change.recipe.model not in models:
        change.recipe = with_operation(change.recipe, models[0])
    members = tuple(models)
    if members != change.recipe.members:
        change.recipe = msgspec.structs.replace(change.recipe, members=members)
        change.settings.append(f"members = {', '.join(members)}")


def _remove(change: Change, wish: Understanding) -> None:
    replaced = any(name.startswith("model_") for name in wish.add)
    for name in wish.remove:
        if name not in change.recipe.operations:
            continue
        if name.startswith("model_"):
            if not replaced:
                change.refused[name] = "it can not go without another model in its place"
            continue
        change.recipe = without_operation(change.recipe, name)
        change.removed.append(name)


def _meant(name: str, shape: Shape) -> str:
    """RMSLE's own loss is the squared error of the target's logarithm."""
    return "target_log" if name == "loss_of_metric" and shape.metric == "rmsle" else name


def _add(change: Change, name: str, shape: Shape) -> None:
    if name in change.recipe.operations:
        if not name.startswith("model_"):
            change.refused[name] = "the solution has it already"
        return
    reason = obstacle(name, change.recipe, shape)
    if reason:
        change.refused[name] = reason
        return
    change.recipe = with_operation(change.recipe, name)
    change.taken.append(name)


def _set(change: Change, wish: Understanding) -> None:
    for name in ("seeds", "folds"):
        value = getattr(wish, name)
        used = name != "seeds" or "bag_seeds" in change.recipe.operations
        if value is not None and used and getattr(change.recipe, name) != value:
            change.recipe = msgspec.structs.replace(change.recipe, **{name: value})
            change.settings.append(f"{name} = {value}")
