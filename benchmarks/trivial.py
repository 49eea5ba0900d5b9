"""The trivial solution of a task: the constant that is best by its metric, as train.csv has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

MEDIAN = frozenset({"mae", "median_ae", "mape", "smape", "wape"})


def trivial_predictions(
    targets: pd.DataFrame, metric: str, prediction: str, classes: Sequence[str] = ()
) -> dict[str, float | str]:
    """Constant by submission column: the best number, the commonest class, or the class shares.

    Where only the order counts, every constant says the same: nothing. Rankings and survival score
    it as the mean of all orders, correlations not at all.
    """
    if prediction == "value":
        return {str(name): _number(targets[name], metric) for name in targets}
    if prediction == "label":
        return {str(name): _commonest(targets[name]) for name in targets}
    if len(classes) > 2:
        shares = targets.iloc[:, 0].astype(str).value_counts(normalize=True)
        return {name: float(shares.get(name, 0.0)) for name in classes}
    return {str(name): _share(targets[name], classes) for name in targets}


def _number(target: pd.Series[float], metric: str) -> float:
    import numpy as np

    if metric in MEDIAN:
        return float(target.median())
    if metric == "pinball_90":
        return float(target.quantile(0.9))
    if metric == "rmsle":
        return float(np.expm1(np.log1p(target).mean()))
    return float(target.mean())


def _commonest(target: pd.Series[str]) -> str:
    counts = target.astype(str).value_counts()
    return str(min(counts.index[counts == counts.max()]))


def _share(target: pd.Series[float], classes: Sequence[str]) -> float:
    """Share of the positive class: the last of `classes`, or 1."""
    positive = classes[-1] if classes else "1"
    return float((target.astype(str) == positive).mean())
