"""What a recipe means for a task: which families, folds, seeds and sizes its script has."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from mle_ideator.implementers.offline.estimators import KERNEL_ROWS, TREES, Estimator, estimator
from mle_ideator.implementers.offline.shape import Shape
from mle_ideator.recipes import Recipe

PARTNERS = {
    "image": ("kernel", "network", "forest", "neighbours"),
    "text": ("linear", "boosting", "kernel"),
    "table": ("boosting", "linear", "forest"),
}
"""Families that a blend or stack joins to the recipe's own, in this order, up to three."""


@dataclass(frozen=True)
class Plan:
    """A recipe, the shape it is for, and everything that follows from the two."""

    recipe: Recipe
    shape: Shape

    def has(self, *operations: str) -> bool:
        return any(name in self.recipe.operations for name in operations)

    @property
    def image(self) -> tuple[int, int] | None:
        return self.shape.profile.image

    @property
    def texts(self) -> tuple[str, ...]:
        """Text columns that the recipe reads word by word or letter by letter."""
        wanted = self.has("text_words", "text_characters", "text_svd")
        return self.shape.columns("text") if wanted else ()

    @cached_property
    def families(self) -> tuple[str, ...]:
        """The recipe's family and, for a combination, up to two others."""
        own = self.recipe.model.removeprefix("model_")
        if not self.has("blend", "stack"):
            return (own,)
        kind = "image" if self.image else "text" if self.texts else "table"
        named = [member.removeprefix("model_") for member in self.recipe.members]
        most = 2 if self.has("image_shifts") else 3
        return tuple(dict.fromkeys((own, *(named or PARTNERS[kind]))))[:most]

    @cached_property
    def folds(self) -> int:
        """By the size of the data only, so that the scores of different recipes compare."""
        if self.recipe.folds is not None:
            return self.recipe.folds
        size = self.shape.profile.rows * (self.shape.numbers + 5) * self.shape.outputs
        return 3 if size > 100_000 else 5

    @property
    def forward(self) -> bool:
        return self.has("validate_by_time") and self.shape.forecasts

    @property
    def by_group(self) -> bool:
        return self.has("validate_by_group") and self.shape.profile.group is not None

    @cached_property
    def seeds(self) -> list[int]:
        count = self.recipe.seeds if self.has("bag_seeds") else 1
        return [self.recipe.seed + 1000 * number for number in range(count)]

    @property
    def fit_rows(self) -> int:
        """Rows that one fit sees."""
        rows = self.shape.profile.rows * (self.folds - 1) // self.folds
        return min(rows, self.recipe.sample or rows) * (5 if self.has("image_shifts") else 1)

    def sample(self, family: str) -> int | None:
        """How many rows a fit of the family is limited to."""
        limits = [self.recipe.sample] if self.recipe.sample else []
        if family == "kernel" and not self.image:
            limits.append(KERNEL_ROWS)
        if family == "neighbours":
            limits.append(20_000)
        fitting = [limit for limit in limits if limit < self.fit_rows]
        return min(fitting, default=None)

    def components(self, family: str) -> int | None:
        """Principal components in place of the numbers, where asked for or where cost demands."""
        wide = self.shape.numbers * self.fit_rows * self.shape.outputs > 5_000_000
        costly = self.image is not None and (family == "boosting" or self.has("image_shifts"))
        if not self.has("pca") and not (wide and costly):
            return None
        return max(min(60 if self.image else 30, self.shape.numbers // 2, self.fit_rows // 4), 1)

    def estimator(self, family: str) -> Estimator:
        rows = min(self.fit_rows, self.sample(family) or self.fit_rows)
        return estimator(family, self.recipe, self.shape, rows, self.width(family))

    def width(self, family: str) -> int:
        """About how many columns the estimator sees."""
        numbers = self.components(family) or self.shape.numbers
        levels = len(self.shape.columns("category")) * (1 if family in TREES else 20)
        texts = len(self.texts) * (50 if family in TREES else 500)
        more = {"interactions": 20, "ratios": 30, "date_parts": 14, "lag_features": 14,
                "rolling_features": 6, "text_statistics": 8}  # fmt: skip
        by_level = 12 * len(self.shape.columns("category")) if self.has("group_aggregates") else 0
        return numbers + levels + texts + by_level + sum(more[n] for n in more if self.has(n))
