"""Transformers that scikit-learn does not have: encoded levels, components of text."""

# Column names are strings in CSV files, and scikit-learn has no types.
# mypy: disable-error-code="has-type, misc, no-any-return"

from __future__ import annotations

from typing import Self

import numpy as np
import pandas as pd
from scipy.sparse import spmatrix
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import TruncatedSVD
from sklearn.model_selection import KFold


class LevelTargets(TransformerMixin, BaseEstimator):
    """Mean targets of each level, drawn to the overall mean where a level has few rows.

    The rows it is fitted to get the means of the other folds' rows, so that none sees its own
    target. Classes give one column each (two classes give one in all).
    """

    def __init__(self, seed: int, weight: float = 10.0) -> None:
        self.seed = seed
        self.weight = weight

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Self:
        known = np.unique(y)
        is_codes = y.ndim == 1 and y.dtype.kind in "iu"
        self.classes_ = (known[1:] if len(known) == 2 else known) if is_codes else None
        values = self._values(y)
        self.mean_ = values.mean(axis=0)
        self.tables_ = [self._table(X[name], values) for name in X]
        return self

    def fit_transform(self, X: pd.DataFrame, y: np.ndarray) -> np.ndarray:
        self.fit(X, y)
        values = self._values(y)
        found = np.tile(self.mean_, (len(X), X.shape[1]))
        for train, valid in KFold(5, shuffle=True, random_state=self.seed).split(X):
            tables = [self._table(X[name].iloc[train], values[train]) for name in X]
            found[valid] = self._encoded(X.iloc[valid], tables)
        return found

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        return self._encoded(X, self.tables_)

    def _values(self, y: np.ndarray) -> np.ndarray:
        if self.classes_ is None:
            return y.reshape(len(y), -1)
        return (y[:, None] == self.classes_).astype(float)

    def _table(self, column: pd.Series, values: np.ndarray) -> pd.DataFrame:
        groups = pd.DataFrame(values).groupby(column.astype(str).to_numpy())
        counts = groups.size().to_numpy()[:, None]
        return (groups.sum() + self.weight * self.mean_) / (counts + self.weight)

    def _encoded(self, X: pd.DataFrame, tables: list[pd.DataFrame]) -> np.ndarray:
        parts = [table.reindex(X[name].astype(str)) for name, table in zip(X, tables, strict=True)]
        return np.hstack([part.fillna(dict(enumerate(self.mean_))).to_numpy() for part in parts])


class TextComponents(TruncatedSVD):
    """Components of a TF-IDF matrix, no more than it has columns."""

    def fit_transform(self, X: spmatrix, y: object = None) -> np.ndarray:
        self.n_components = min(self.n_components, X.shape[1])
        return super().fit_transform(X)
