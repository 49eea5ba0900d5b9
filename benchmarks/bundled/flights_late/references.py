"""The weather and the plane help; how late the day's other flights were helps most."""

from collections.abc import Iterator

import pandas as pd

from mle_ideator.benchmarks.references import Given, Reference
from mle_ideator.benchmarks.references.encoding import Pair, as_given, means_by
from mle_ideator.benchmarks.references.tabular import ladder

HOUR = ["origin", "month", "day", "hour"]


def references() -> Iterator[Reference]:
    return ladder(features, full)


def features(given: Given) -> Pair:
    """With the weather of the hour of departure, and the plane."""
    weather = given.tables["weather"].drop_duplicates(HOUR)
    planes = given.tables["planes"].set_index("tailnum").add_prefix("plane_")
    train, test = (
        frame.assign(hour=frame["sched_dep_time"] // 100)
        .merge(weather, how="left", on=HOUR)
        .join(planes, on="tailnum")
        .assign(day_of_year=lambda joined: joined["month"] * 31 + joined["day"])
        for frame in as_given(given)
    )
    return train, test


def full(given: Given) -> Pair:
    """With how often the others of the day, the hour, the airline, the way were late."""
    train, test = features(given)
    keys = (_grouped(train), _grouped(test))
    made = {
        "late that day": (["month", "day"], 10.0),
        "late there that day": (["month", "day", "origin"], 10.0),
        "late at that time": (["month", "day", "part"], 8.0),
        "late there at that time": (["month", "day", "part", "origin"], 8.0),
        "late airline that day": (["month", "day", "carrier"], 8.0),
        "late way that day": (["month", "day", "dest"], 5.0),
        "late airline": (["carrier"], 20.0),
        "late airline at that time": (["carrier", "hour"], 20.0),
        "late way": (["dest", "origin"], 20.0),
        "late flight": (["carrier", "flight"], 10.0),
        "late plane": (["tailnum"], 10.0),
    }
    for name, (columns, weight) in made.items():
        inside, outside = means_by(given, columns, weight=weight, frames=keys)
        train = train.assign(**{name: inside.to_numpy()})
        test = test.assign(**{name: outside.to_numpy()})
    return train, test


def _grouped(flights: pd.DataFrame) -> pd.DataFrame:
    return flights.assign(part=flights["sched_dep_time"] // 400)
