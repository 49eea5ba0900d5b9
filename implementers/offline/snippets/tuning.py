"""A random search of hyper-parameters."""

# Column names are strings in CSV files, and scikit-learn has no types.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import ParameterSampler


def tuned_parameters(
    fit: Callable[..., Any],
    predict: Callable[[Any, pd.DataFrame], np.ndarray],
    space: dict[str, Any],
    X: pd.DataFrame,
    y: np.ndarray,
    folds: list[tuple[np.ndarray, np.ndarray]],
    loss: Callable[[np.ndarray, np.ndarray], float],
    trials: int,
    rows: int,
    seed: int,
) -> dict[str, Any]:
    """The parameters with the least loss on the last fold, fitted to at most `rows` of its rows.

    The defaults take part; they stay where nothing beats them.
    """
    train, valid = folds[-1]
    train = np.sort(np.random.default_rng(seed).permutation(train)[:rows])
    trials = min(trials, math.prod(len(values) for values in space.values()))
    candidates = [{}, *ParameterSampler(space, trials, random_state=seed)]
    losses = []
    for candidate in candidates:
        model = fit(X.iloc[train], y[train], seed, **candidate)
        losses.append(loss(y[valid], predict(model, X.iloc[valid])))
    best = candidates[int(np.argmin(losses))]
    print("tuned parameters:", best or "the defaults")
    return best
