"""What gauges show against what the others say in that program; then over some minutes."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from mle_ideator.benchmarks.references import Given, Reference
from mle_ideator.benchmarks.references.encoding import Pair, as_given
from mle_ideator.benchmarks.references.tabular import ladder

GAUGES = ["current", "flow", "inlet_pressure", "inlet_temperature", "outlet_pressure"]
GAUGES += ["outlet_temperature", "speed", "vibration"]
SPAN = 7
"""Minutes that are looked at together."""


def references() -> Iterator[Reference]:
    return ladder(features, full)


def features(given: Given) -> Pair:
    """With each gauge's error about its prediction from the others, by program."""
    train, test = as_given(given)
    errors = _errors(given)
    return _beside(train, errors[0]), _beside(test, errors[1])


def full(given: Given) -> Pair:
    """With errors over some minutes: their mean, their spread, and values that do not move."""
    pair, errors, made = as_given(given), _errors(given), features(given)
    over = [_over_minutes(frame, error) for frame, error in zip(pair, errors, strict=True)]
    return pd.concat([made[0], over[0]], axis=1), pd.concat([made[1], over[1]], axis=1)


def _beside(minutes: pd.DataFrame, errors: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([minutes.drop(columns="run"), errors.abs().add_prefix("error of ")], axis=1)


def _errors(given: Given) -> Pair:
    train, test = as_given(given)
    well = given.train[given.train[given.spec.targets[0]].astype(int) == 0]
    errors = [pd.DataFrame(0.0, index=frame.index, columns=GAUGES) for frame in (train, test)]
    for program in sorted(train["program"].unique()):
        known = well[well["program"] == program]
        for gauge in GAUGES:
            others = [name for name in GAUGES if name != gauge]
            model = make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge(1.0))
            model.fit(known[others], known[gauge])
            spread = (known[gauge] - model.predict(known[others])).std()
            for frame, error in zip((train, test), errors, strict=True):
                here = frame["program"] == program
                off = frame.loc[here, gauge] - model.predict(frame.loc[here, others])
                error.loc[here, gauge] = off / spread
    return errors[0], errors[1]


def _over_minutes(minutes: pd.DataFrame, errors: pd.DataFrame) -> pd.DataFrame:
    order = minutes.sort_values(["run", "minute"]).index
    errors, runs = errors.loc[order], minutes.loc[order, "run"]
    drift = _rolled(errors, runs, "mean").abs()
    spread = _rolled(errors, runs, "std").fillna(1)
    steps = _rolled(errors.groupby(runs).diff().abs(), runs, "mean")
    made = {
        **{f"drift of {name}": drift[name] for name in GAUGES},
        **{f"spread of {name}": spread[name] for name in GAUGES},
        "largest drift": drift.max(axis=1),
        "largest spread": spread.max(axis=1),
        "least step": steps.min(axis=1),
        "all": np.sqrt(_rolled((errors**2).mean(axis=1).to_frame("all"), runs, "mean")["all"]),
    }
    return pd.DataFrame(made).loc[minutes.index]


def _rolled(values: pd.DataFrame, runs: "pd.Series[str]", how: str) -> pd.DataFrame:
    """Over some minutes of the same run, about each minute; rows are in order of time."""
    window = values.groupby(runs).rolling(SPAN, center=True, min_periods=1)
    return window.agg(how).reset_index(level=0, drop=True)
