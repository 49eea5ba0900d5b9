"""Boosted trees as plain arrays: fitted by scikit-learn, kept and read without pickle.

A saved proxy is numbers only, so a file from somebody else can not run code, and reading it needs
neither scikit-learn nor the version of it that fitted it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SETTINGS = {
    "learning_rate": 0.08,
    "max_iter": 60,
    "max_leaf_nodes": 6,
    "min_samples_leaf": 10,
    "l2_regularization": 5.0,
    "max_features": 0.3,
}
"""Small trees with much shrinkage: there are hundreds of examples, of few tasks."""


@dataclass(frozen=True)
class Trees:
    """Nodes of all trees in one table. A leaf is its own child on both sides."""

    roots: Ints
    feature: Ints
    threshold: Floats
    missing_left: NDArray[np.bool_]
    left: Ints
    right: Ints
    value: Floats
    """Of a leaf, as it is added up; what inner nodes have is not used."""
    start: float
    """What a row has before the first tree."""
    depth: int

    def raw(self, rows: Floats) -> Floats:
        """The log-odds of each row."""
        at = np.broadcast_to(self.roots, (len(rows), len(self.roots))).copy()
        row = np.arange(len(rows))[:, None]
        for _ in range(self.depth):
            x = rows[row, self.feature[at]]
            goes_left = np.where(np.isnan(x), self.missing_left[at], x <= self.threshold[at])
            at = np.where(goes_left, self.left[at], self.right[at])
        log_odds: Floats = self.start + self.value[at].sum(axis=1)
        return log_odds

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        return {name: np.asarray(getattr(self, name)) for name in self.__dataclass_fields__}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Trees:
        """Raises `KeyError` or `ValueError` if they are none, or lead out of the table."""
        found: dict[str, Any] = {name: arrays[name] for name in cls.__dataclass_fields__}
        nodes = len(found["value"])
        for name in ("roots", "left", "right"):
            if len(found[name]) and not 0 <= found[name].min() <= found[name].max() < nodes:
                raise ValueError(f"{name} leads to no node")
        found["start"], found["depth"] = float(found["start"]), int(found["depth"])
        return cls(**found)


def fitted(
    rows: Floats, improved: NDArray[np.bool_], directions: Sequence[int], seed: int = 0
) -> Trees:
    """Trees for the log-odds that a row improved. The same data gives the same trees.

    `directions` says of each column if they may only rise with it (1), only fall (−1), or both (0).
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    rows = np.where(np.isnan(rows).all(axis=0), 0.0, rows)  # it wants one value to cut at
    model = HistGradientBoostingClassifier(
        random_state=seed, monotonic_cst=list(directions), **_SETTINGS
    )
    with threadpool_limits(limits=1):  # so little work takes minutes where threads wait for cores
        model.fit(rows, improved)
    # scikit-learn has no public way to its trees; a test holds `raw` against what it predicts.
    start = float(model._baseline_prediction.item())
    return _joined([tree.nodes for (tree,) in model._predictors], start)


def _joined(trees: list[NDArray[np.void]], start: float) -> Trees:
    sizes = [len(nodes) for nodes in trees]
    roots = np.cumsum([0, *sizes[:-1]])
    nodes = np.concatenate(trees)
    offset = np.repeat(roots, sizes)
    own, leaf = np.arange(len(nodes)), nodes["is_leaf"].astype(bool)
    return Trees(
        roots=roots,
        feature=np.where(leaf, 0, nodes["feature_idx"]).astype(np.int64),
        threshold=nodes["num_threshold"].astype(float),
        missing_left=nodes["missing_go_to_left"].astype(bool),
        left=np.where(leaf, own, nodes["left"] + offset).astype(np.int64),
        right=np.where(leaf, own, nodes["right"] + offset).astype(np.int64),
        value=nodes["value"].astype(float),
        start=start,
        depth=int(nodes["depth"].max()),
    )
