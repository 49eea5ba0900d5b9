"""Times that were cut short are no times of death: learn from risk, not from days.

What is learnt is the null model's martingale residual: cumulative hazard (Nelson and Aalen) at the
patient's time, less 1 if the patient died then. It is the larger, the longer the patient outlived
expectation. The best learn the hazard itself: deaths for each unit of cumulative hazard.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

from mle_ideator.benchmarks.references import Given, Reference, models
from mle_ideator.benchmarks.references.encoding import Pair, as_given, codes
from mle_ideator.benchmarks.references.outputs import Array
from mle_ideator.benchmarks.references.tabular import rung


def references() -> Iterator[Reference]:
    yield from rung("weak", models.weak(), as_given)
    yield from rung("boosting", models.boosted(), without_year)
    yield from rung("features", models.engineered(), without_year, outlived)
    yield from rung("full", models.best(), full, outlived)
    for leaves in (3, 4, 6, 8):
        for rate in (0.02, 0.04):
            predict = partial(as_hazard, leaves=leaves, rate=rate)
            yield Reference(f"full/hazard leaves {leaves} rate {rate}", "full", predict)
    yield Reference("full/blend of hazards", "full", hazards)


def without_year(given: Given) -> Pair:
    """Without the year of surgery: it tells how long patients could be followed."""
    return tuple(frame.drop(columns="year") for frame in as_given(given))  # type: ignore[return-value]


def full(given: Given) -> Pair:
    """With logarithms of nodes and receptors, sizes in their order, and age from the middle."""
    train, test = without_year(given)
    return _with_logs(train), _with_logs(test)


def outlived(given: Given) -> "pd.Series[float]":
    return _hazard(given) - given.train["died"]


def as_hazard(given: Given, leaves: int, rate: float) -> Array:
    """Minus the predicted hazard, from a Poisson model of deaths with the hazard as exposure."""
    train, test = codes(full(given))
    exposure = _hazard(given).clip(lower=1e-3)
    model = HistGradientBoostingRegressor(
        loss="poisson",
        learning_rate=rate,
        max_iter=150,
        max_leaf_nodes=leaves,
        early_stopping=False,
        random_state=0,
    )
    model.fit(train, given.train["died"] / exposure, sample_weight=exposure)
    return -np.asarray(model.predict(test))


def hazards(given: Given) -> Array:
    """Mean logarithm of three hazards."""
    each = [as_hazard(given, leaves, 0.02) for leaves in (3, 4, 6)]
    return -np.asarray(np.mean([np.log(-one) for one in each], axis=0))


def _hazard(given: Given) -> "pd.Series[float]":
    """The cumulative hazard of all patients at each one's time."""
    days, died = given.train["days"], given.train["died"]
    at_risk = days.rank(method="max", ascending=False)
    steps = (died / at_risk).groupby(days).sum().sort_index().cumsum()
    return days.map(steps)


def _with_logs(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(
        size=frame["size"].map({"<=20": 0, "20-50": 1, ">50": 2}),
        log_nodes=np.log1p(frame["nodes"]),
        few_nodes=np.exp(-0.12 * frame["nodes"]),
        log_pgr=np.log1p(frame["pgr"]),
        log_er=np.log1p(frame["er"]),
        age_from_middle=(frame["age"] - 50) ** 2,
    )
