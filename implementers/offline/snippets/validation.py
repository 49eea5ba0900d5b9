"""Cross-validation, and the predictions of models as arrays of one shape."""

# Column names are strings in CSV files, and scikit-learn has no types.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, softmax
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

# What every script sets for itself: how many columns predictions have.
OUTPUTS = 1


def plain_folds(rows: int, count: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training and validation positions of each fold, rows at random."""
    return list(KFold(count, shuffle=True, random_state=seed).split(np.zeros(rows)))


def stratified_folds(y: np.ndarray, count: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Folds in which the classes are as frequent as in all rows."""
    rarest = np.bincount(y)[np.bincount(y) > 0].min()
    if rarest < count:
        return plain_folds(len(y), count, seed)
    return list(StratifiedKFold(count, shuffle=True, random_state=seed).split(y, y))


def group_folds(groups: pd.Series, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Folds that keep the rows of a group together."""
    count = min(count, groups.nunique())
    return list(GroupKFold(count).split(groups, groups=groups.astype(str)))


def cross_validate(
    fit: Callable[..., Any],
    predict: Callable[[Any, pd.DataFrame], np.ndarray],
    X: pd.DataFrame,
    y: np.ndarray,
    X_test: pd.DataFrame,
    folds: list[tuple[np.ndarray, np.ndarray]],
    seeds: list[int],
    refit: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Predictions of the validation rows (of other rows: missing) and of the test rows.

    `fit(X, y, seed)` returns a fitted model; the seeds' predictions are averaged. Test rows get
    the mean over the folds or, with `refit`, the predictions of models fitted to all rows.
    """
    checked, test = np.full((len(X), OUTPUTS), np.nan), np.zeros((len(X_test), OUTPUTS))
    for number, (train, valid) in enumerate(folds):
        models = [fit(X.iloc[train], y[train], seed + number) for seed in seeds]
        checked[valid] = np.mean([predict(m, X.iloc[valid]) for m in models], axis=0)
        if not refit:
            test += np.mean([predict(m, X_test) for m in models], axis=0) / len(folds)
    if refit:
        test = np.mean([predict(fit(X, y, seed), X_test) for seed in seeds], axis=0)
    return checked, test


def predict_values(model: Any, X: pd.DataFrame) -> np.ndarray:
    """(rows, OUTPUTS) values."""
    return np.asarray(model.predict(X)).reshape(len(X), OUTPUTS)


def predict_classes(model: Any, X: pd.DataFrame) -> np.ndarray:
    """(rows, OUTPUTS) probabilities of the classes; 0 for a class that the model never saw.

    Decision scores of models without probabilities are squeezed into (0, 1).
    """
    if hasattr(model, "predict_proba"):
        found = model.predict_proba(X)
    else:
        scores = model.decision_function(X)
        both = np.column_stack([-scores, scores]) / 2 if scores.ndim == 1 else scores
        found = softmax(both, axis=1)
    probabilities = np.zeros((len(X), OUTPUTS))
    probabilities[:, model.classes_] = found
    return probabilities


def predict_marks(model: Any, X: pd.DataFrame) -> np.ndarray:
    """(rows, OUTPUTS) probabilities of many labels, each for itself."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)
    return expit(model.decision_function(X))
