"""A line through few features, which few examples are enough for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_STRENGTH = 0.1
"""Inverse of the penalty on weights, of features of variance 1."""


@dataclass(frozen=True)
class Line:
    """Log-odds as a weighted sum of columns; what can not be told counts as the mean."""

    columns: NDArray[np.int64]
    mean: Floats
    weight: Floats
    intercept: float

    def raw(self, rows: Floats) -> Floats:
        """The log-odds of each row."""
        away = np.nan_to_num(rows[:, self.columns] - self.mean, nan=0.0)
        log_odds: Floats = away @ self.weight + self.intercept
        return log_odds

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        return {name: np.asarray(getattr(self, name)) for name in self.__dataclass_fields__}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Line:
        """Raises `KeyError` if they are none."""
        found: dict[str, Any] = {name: arrays[name] for name in cls.__dataclass_fields__}
        return cls(**{**found, "intercept": float(found["intercept"])})


def line_through(rows: Floats, improved: NDArray[np.bool_], columns: NDArray[np.int64]) -> Line:
    """The line for the log-odds that a row improved."""
    from sklearn.linear_model import LogisticRegression

    known = rows[:, columns]
    told = ~np.isnan(known)
    counts = np.maximum(told.sum(axis=0), 1)
    mean = np.where(told, known, 0.0).sum(axis=0) / counts
    away = np.where(told, known - mean, 0.0)
    scale = np.sqrt((away**2).mean(axis=0)) + 1e-9
    model = LogisticRegression(C=_STRENGTH, max_iter=1000).fit(away / scale, improved)
    return Line(columns, mean, model.coef_[0] / scale, float(model.intercept_[0]))
