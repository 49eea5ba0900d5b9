"""Ratios of water and binder, ages as logs; many small trees, and smooth machines beside them."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.svm import SVR

from mle_ideator.benchmarks.references import Given, Reference, models
from mle_ideator.benchmarks.references.encoding import Pair, as_given
from mle_ideator.benchmarks.references.models import Model, blended, boosting
from mle_ideator.benchmarks.references.outputs import Wish
from mle_ideator.benchmarks.references.tabular import rung

INGREDIENTS = ["cement", "blast_furnace_slag", "fly_ash", "water", "superplasticizer"]
INGREDIENTS += ["coarse_aggregate", "fine_aggregate"]
BINDERS = INGREDIENTS[:3]


def references() -> Iterator[Reference]:
    yield from rung("weak", models.weak(), as_given)
    yield from rung("boosting", models.boosted(), as_given)
    yield from rung("features", models.engineered(), features)
    yield from rung("full", best(), features)


def best() -> list[Model]:
    """Boosting of many small steps on drawn rows and columns, kernel machines, and both."""
    drawn = [
        Model(f"boosting on drawn rows, depth {depth}", partial(_drawn, depth=depth))
        for depth in (3, 4, 5, 6)
    ]
    half = [
        Model(f"boosting on half of columns, {leaves} leaves",
              boosting(500, learning_rate=0.05, max_leaf_nodes=leaves, min_samples_leaf=5,
                       max_features=0.5))
        for leaves in (6, 10)
    ]  # fmt: skip
    kernels = [
        Model(f"kernel machine {cost}", partial(_kernel, cost=cost), "dense")
        for cost in (300, 1000)
    ]
    return [
        *drawn,
        *half,
        *kernels,
        blended("drawn rows", *drawn),
        blended("drawn rows and half of columns", *drawn, *half),
        blended("boosting and kernel", drawn[1], kernels[0]),
        blended("drawn rows and kernels", *drawn, *kernels),
        blended("all", *drawn, *half, *kernels),
    ]


def _drawn(wish: Wish, depth: int) -> GradientBoostingRegressor:
    return GradientBoostingRegressor(
        n_estimators=500,
        learning_rate=0.05,
        max_depth=depth,
        subsample=0.7,
        max_features=0.4,
        random_state=models.SEED,
    )


def _kernel(wish: Wish, cost: float) -> SVR:
    return SVR(C=cost, gamma=0.05, epsilon=1.0)


def features(given: Given) -> Pair:
    """With the ratios that engineers use, and the age as its logarithm."""
    train, test = as_given(given)
    return _with_ratios(train), _with_ratios(test)


def _with_ratios(frame: pd.DataFrame) -> pd.DataFrame:
    binder = frame[BINDERS].sum(axis=1)
    aggregate = frame["coarse_aggregate"] + frame["fine_aggregate"]
    return frame.assign(
        binder=binder,
        water_to_cement=frame["water"] / frame["cement"],
        water_to_binder=frame["water"] / binder,
        plasticizer_to_binder=frame["superplasticizer"] / binder,
        aggregate_to_binder=aggregate / binder,
        fine_share=frame["fine_aggregate"] / aggregate,
        log_age=np.log1p(frame["age"]),
        cement_and_age=np.log1p(frame["age"]) * frame["cement"],
    )
