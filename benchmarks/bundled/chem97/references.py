"""Schools differ: what their other students get, given their school marks, is most of the gain."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.references import Given, Reference
from mle_ideator.benchmarks.references.encoding import Pair, as_given, means_by
from mle_ideator.benchmarks.references.tabular import ladder


def references() -> Iterator[Reference]:
    return ladder(features, full)


def features(given: Given) -> Pair:
    """With the mean score of the school and of the authority."""
    train, test = as_given(given)
    for key in ("school", "lea"):
        train[f"{key} score"], test[f"{key} score"] = means_by(given, [key])
    return train, test


def full(given: Given) -> Pair:
    """With what a school adds to what the marks promise, and with the marks of its students."""
    train, test = features(given)
    marks = given.train["gcsescore"]
    line = np.polynomial.Polynomial.fit(marks, given.y.astype(float), 3)
    rest = given.y.astype(float) - line(marks)
    for key in (["school"], ["lea"], ["school", "gender"]):
        name = f"{' '.join(key)} adds"
        train[name], test[name] = means_by(given, key, rest, weight=8)
    return _with_school(train, test, line), _with_school(test, train, line)


def _with_school(
    frame: pd.DataFrame, other: pd.DataFrame, line: "np.polynomial.Polynomial"
) -> pd.DataFrame:
    marks = pd.concat([frame, other]).groupby("school")["gcsescore"].agg(["mean", "std", "size"])
    of = marks.reindex(frame["school"]).reset_index(drop=True)
    promised = line(frame["gcsescore"])
    return frame.assign(
        promised=promised,
        expected=promised + frame["school adds"],
        school_marks=of["mean"],
        school_spread=of["std"],
        school_size=of["size"],
        above_school=frame["gcsescore"] - of["mean"],
    ).drop(columns=["school", "lea"])
