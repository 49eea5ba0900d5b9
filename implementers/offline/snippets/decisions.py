"""Post-processing learnt on validation predictions; each part is judged by what others taught."""

# Column names are strings in CSV files, and scikit-learn has no types.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import KFold


def calibrate(
    y: np.ndarray, checked: np.ndarray, test: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities mapped to observed frequencies, one increasing function a column."""
    truth = y if y.ndim == 2 else (y[:, None] == np.arange(checked.shape[1])).astype(int)
    found, found_test = np.zeros_like(checked), np.zeros_like(test)
    for column in range(checked.shape[1]):
        model = IsotonicRegression(y_min=1e-3, y_max=1 - 1e-3, out_of_bounds="clip")
        p, t = checked[:, column], truth[:, column]
        for train, valid in KFold(5, shuffle=True, random_state=seed).split(p):
            found[valid, column] = model.fit(p[train], t[train]).predict(p[valid])
        found_test[:, column] = model.fit(p, t).predict(test[:, column])
    if y.ndim == 2:
        return found, found_test
    return tuple(p / p.sum(axis=1, keepdims=True) for p in (found, found_test))


def within_range(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Predictions clipped to the range of the known targets."""
    return np.clip(p, y.min(), y.max())


def class_weights_for(
    y: np.ndarray, p: np.ndarray, score: Callable[[np.ndarray, np.ndarray], float]
) -> np.ndarray:
    """Factors of the classes' probabilities before the largest is chosen, one class at a time."""
    weights = np.ones(p.shape[1])
    best = score(y, (p * weights).argmax(axis=1))
    for column in range(p.shape[1]):
        for factor in (0.5, 0.75, 1.35, 2.0):
            trial = weights.copy()
            trial[column] = factor
            value = score(y, (p * trial).argmax(axis=1))
            if value > best + 1e-9:
                best, weights = value, trial
    return weights


def tuned_labels(
    y: np.ndarray,
    checked: np.ndarray,
    test: np.ndarray,
    score: Callable[[np.ndarray, np.ndarray], float],
    seed: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Class codes by tuned weights of the classes; higher scores must be better."""
    labels = np.zeros(len(y), dtype=int)
    for train, valid in KFold(5, shuffle=True, random_state=seed).split(checked):
        weights = class_weights_for(y[train], checked[train], score)
        labels[valid] = (checked[valid] * weights).argmax(axis=1)
    return labels, (test * class_weights_for(y, checked, score)).argmax(axis=1)


def cuts_for(
    y: np.ndarray, expected: np.ndarray, score: Callable[[np.ndarray, np.ndarray], float]
) -> np.ndarray:
    """Cut points between the ordered classes on the expected class, one at a time."""
    shares = np.bincount(y, minlength=y.max() + 1).cumsum()[:-1] / len(y)
    cuts = np.quantile(expected, shares)
    best = score(y, np.searchsorted(np.sort(cuts), expected))
    for width in (0.4, 0.2, 0.1, 0.05):
        for position in range(len(cuts)):
            for step in (-width, width):
                trial = cuts.copy()
                trial[position] += step
                value = score(y, np.searchsorted(np.sort(trial), expected))
                if value > best + 1e-9:
                    best, cuts = value, trial
    return np.sort(cuts)


def tuned_ranks(
    y: np.ndarray,
    checked: np.ndarray,
    test: np.ndarray,
    score: Callable[[np.ndarray, np.ndarray], float],
    seed: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Ordered class codes by cutting the expected class; higher scores must be better."""
    codes = np.arange(checked.shape[1])
    expected, expected_test = checked @ codes, test @ codes
    labels = np.zeros(len(y), dtype=int)
    for train, valid in KFold(5, shuffle=True, random_state=seed).split(expected):
        labels[valid] = np.searchsorted(cuts_for(y[train], expected[train], score), expected[valid])
    return labels, np.searchsorted(cuts_for(y, expected, score), expected_test)


def tuned_marks(
    y: np.ndarray,
    checked: np.ndarray,
    test: np.ndarray,
    score: Callable[[np.ndarray, np.ndarray], float],
    seed: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Many labels, each set above its own threshold; higher scores must be better."""
    marks = np.zeros(checked.shape, dtype=int)
    for train, valid in KFold(5, shuffle=True, random_state=seed).split(checked):
        marks[valid] = checked[valid] > thresholds_for(y[train], checked[train], score)
    return marks, (test > thresholds_for(y, checked, score)).astype(int)


def thresholds_for(
    y: np.ndarray, p: np.ndarray, score: Callable[[np.ndarray, np.ndarray], float]
) -> np.ndarray:
    thresholds = np.full(p.shape[1], 0.5)
    for column in range(p.shape[1]):
        trials = [0.5, *np.arange(0.1, 0.9, 0.05)]
        values = []
        for trial in trials:
            thresholds[column] = trial
            values.append(score(y, (p > thresholds).astype(int)))
        thresholds[column] = trials[int(np.argmax(values))]
    return thresholds
