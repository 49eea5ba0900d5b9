"""Combinations of several models' predictions, learnt on validation predictions.

`checked` and `test` hold one (rows, outputs) array a model.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import KFold, cross_val_predict


def blend(
    checked: list[np.ndarray], test: list[np.ndarray], loss: Callable[[np.ndarray], float]
) -> tuple[np.ndarray, np.ndarray]:
    """The weighted average with the least loss, found by adding one model at a time."""
    chosen: list[int] = []
    for _ in range(12):
        losses = [loss(np.mean([checked[i] for i in [*chosen, new]], axis=0))
                  for new in range(len(checked))]  # fmt: skip
        chosen.append(int(np.argmin(losses)))
    print("weights of the blend:", np.bincount(chosen, minlength=len(checked)) / len(chosen))
    return (np.mean([checked[i] for i in chosen], axis=0),
            np.mean([test[i] for i in chosen], axis=0))  # fmt: skip


def stack_values(
    y: np.ndarray, checked: list[np.ndarray], test: list[np.ndarray], seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """A ridge regression on the models' predictions; validation rows are cross-predicted."""
    inputs, inputs_test = np.hstack(checked), np.hstack(test)
    model = RidgeCV(np.logspace(-3, 3, 13))
    folds = KFold(5, shuffle=True, random_state=seed)
    found = cross_val_predict(model, inputs, y, cv=folds)
    predicted = model.fit(inputs, y).predict(inputs_test)
    return found.reshape(len(y), -1), predicted.reshape(len(inputs_test), -1)


def stack_classes(
    y: np.ndarray, checked: list[np.ndarray], test: list[np.ndarray], seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """A logistic regression on the log-probabilities; validation rows are cross-predicted."""
    inputs, inputs_test = (np.log(np.clip(np.hstack(p), 1e-4, 1)) for p in (checked, test))
    model = LogisticRegression(C=0.1, max_iter=1000)
    found, known = np.zeros_like(checked[0]), np.unique(y)
    for train, valid in KFold(5, shuffle=True, random_state=seed).split(inputs):
        model.fit(inputs[train], y[train])
        found[np.ix_(valid, model.classes_)] = model.predict_proba(inputs[valid])
    predicted = np.zeros_like(test[0])
    predicted[:, known] = model.fit(inputs, y).predict_proba(inputs_test)
    return found, predicted


def stack_marks(
    y: np.ndarray, checked: list[np.ndarray], test: list[np.ndarray], seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """`stack_classes` for each of many labels; a label that never varies keeps the first model."""
    found, predicted = checked[0].copy(), test[0].copy()
    for column in range(y.shape[1]):
        if len(np.unique(y[:, column])) == 2:
            parts = [[np.column_stack([1 - p[:, column], p[:, column]]) for p in group]
                     for group in (checked, test)]  # fmt: skip
            both = stack_classes(y[:, column], parts[0], parts[1], seed)
            found[:, column], predicted[:, column] = both[0][:, 1], both[1][:, 1]
    return found, predicted
