"""A patient's other tests tell most; then which clinics, on which days, find many."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.references import Given, Reference, models
from mle_ideator.benchmarks.references.encoding import Pair, as_given, means_by
from mle_ideator.benchmarks.references.models import Model, blended, boosting
from mle_ideator.benchmarks.references.tabular import ladder, rung


def references() -> Iterator[Reference]:
    yield from ladder(features, full)
    yield from rung("full", with_small_leaves(), full)


def with_small_leaves() -> list[Model]:
    """Positive tests are few: leaves of five rows find them, in many rounds."""
    small = [
        Model(name, boosting(rounds, learning_rate=rate, min_samples_leaf=5, **more), suited=True)
        for name, rounds, rate, more in (
            ("leaves of 5", 300, 0.05, {}),
            ("leaves of 5, short", 150, 0.1, {}),
            ("leaves of 5, 16 of them", 300, 0.05, {"max_leaf_nodes": 16}),
            ("leaves of 5, penalty", 300, 0.05, {"l2_regularization": 5.0}),
            ("leaves of 5, half of columns", 300, 0.05, {"max_features": 0.5}),
            ("leaves of 5, fewer rounds", 200, 0.05, {}),
        )
    ]
    forest = models.tuned()["forest 5"]
    return [
        *small,
        blended("small leaves", *small),
        blended("small leaves, two", small[0], small[3]),
        blended("small leaves, three", small[0], small[2], small[3]),
        blended("small leaves and forest", *small, forest),
    ]


def features(given: Given) -> Pair:
    """With the numbers of a patient's other tests, and of those that were positive."""
    train, test = as_given(given)
    positive = given.y.astype(int)
    by_patient = positive.groupby(train["patient"]).agg(["sum", "count"])
    made = []
    for frame, own, itself in ((train, positive, 1), (test, 0, 0)):
        of = by_patient.reindex(frame["patient"]).fillna(0)
        made.append(
            frame.assign(
                others_positive=of["sum"].to_numpy() - own,
                others=of["count"].to_numpy() - itself,
                all_tests=frame["patient"].map(_tests(given)),
            )
        )
    return made[0], made[1]


def full(given: Given) -> Pair:
    """With days since and until the patient's positive tests, shares of clinics, hours as logs."""
    train, test = features(given)
    for key in (["clinic"], ["clinic", "group"], ["payor", "patient_class"]):
        train[" ".join(key)], test[" ".join(key)] = means_by(given, key, weight=30)
    found = train.assign(row=train.index)[given.y.astype(int) == 1][["patient", "day", "row"]]
    drop = ["patient"]
    return _timed(train, found, True).drop(columns=drop), _timed(test, found, False).drop(
        columns=drop
    )


def _tests(given: Given) -> "pd.Series[int]":
    """How often each patient was tested, in both files."""
    patients: pd.Series[int] = pd.concat([given.train["patient"], given.test["patient"]])
    return patients.value_counts()


def _timed(frame: pd.DataFrame, found: pd.DataFrame, inside: bool) -> pd.DataFrame:
    """Days from the nearest positive test of the same patient, other than the row itself."""
    pairs = frame[["patient", "day"]].reset_index().merge(found, on="patient", suffixes=("", "_"))
    if inside:
        pairs = pairs[pairs["index"] != pairs["row"]]
    since = (pairs["day"] - pairs["day_"]).groupby(pairs["index"])
    return frame.assign(
        nearest=since.agg(lambda days: days.abs().min()).reindex(frame.index),
        first=since.max().reindex(frame.index),
        hours=np.log1p(frame["hours_to_lab"].clip(0, 1000)),
    )
