"""What solutions are made of: their recipes, or what their code names and uses."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from mle_ideator.operations import OPERATIONS
from mle_ideator.recipes import recipe_in

_MOST_CODE = 100_000
MOST_SEARCHED = 1_000_000
"""Characters of code without a recipe that are read of one state: a few seconds' work."""
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
_DEEP = re.compile(
    r"^[ \t]*(?:import|from)[ \t]+(?:torch\w*|tensorflow|keras|transformers|timm|jax|flax"
    r"|lightning|pytorch_lightning|fastai|sentence_transformers|ultralytics)\b",
    re.MULTILINE,
)


class Made(NamedTuple):
    """What a code is made of."""

    operations: frozenset[str]
    by_recipe: bool
    """Does it say so itself?"""


def operations_in(code: str | None) -> frozenset[str]:
    """The operations of a solution: its recipe, or what its code names and uses.

    Of code without a recipe the first 100,000 characters are read.
    """
    said = _said_by(code)
    return _found_in(code) if said is None else said


def made_of(codes: Iterable[str | None]) -> dict[str | None, Made]:
    """The operations of each distinct code, each read once, in the order given.

    What has no recipe is left out where it would take more than `MOST_SEARCHED` characters in all;
    the first code is there in any case.
    """
    made: dict[str | None, Made] = {}
    left = MOST_SEARCHED
    for code in dict.fromkeys(codes):
        said = _said_by(code)
        if said is not None:
            made[code] = Made(said, by_recipe=True)
            continue
        left -= min(len(code or ""), _MOST_CODE)
        if left >= 0 or not made:
            made[code] = Made(_found_in(code), by_recipe=False)
    return made


def uses_deep_learning(code: str | None) -> bool:
    """Does a code without a recipe import a library for deep networks?"""
    return recipe_in(code) is None and bool(_DEEP.search((code or "")[:_MOST_CODE]))


def _said_by(code: str | None) -> frozenset[str] | None:
    recipe = recipe_in(code)
    return None if recipe is None else frozenset(OPERATIONS.keys() & recipe.operations)


def _found_in(code: str | None) -> frozenset[str]:
    text = (code or "")[:_MOST_CODE]
    used = {name for name, marker in _MARKERS.items() if re.search(marker, text)}
    return frozenset(used | {n for n, known in OPERATIONS.items() if known.pattern.search(text)})
