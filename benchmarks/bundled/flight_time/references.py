"""A route has its usual time; the day's winds add to it or save it, alike for a whole region."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.references import Given, Reference
from mle_ideator.benchmarks.references.encoding import Pair, as_given, means_by
from mle_ideator.benchmarks.references.tabular import ladder


def references() -> Iterator[Reference]:
    return ladder(features, full)


def features(given: Given) -> Pair:
    """With the destination's place, the scheduled time, the usual pace, and the day's pace."""
    train, test = (_placed(frame, given.tables["airports"]) for frame in as_given(given))
    pace = given.y / train["distance"]
    usual = means_by(given, ["dest"], pace)
    train, test = _with(train, "pace", usual[0]), _with(test, "pace", usual[1])
    that_day = means_by(given, ["month", "day"], pace - usual[0])
    return _with(train, "slower day", that_day[0]), _with(test, "slower day", that_day[1])


def full(given: Given) -> Pair:
    """With how much slower than usual the day's other flights were, near and far."""
    train, test = features(given)
    pace = given.y / train["distance"]
    usual = means_by(given, ["dest", "origin"], pace, weight=3)
    late = pace - usual[0]
    keys = (_regions(train), _regions(test))
    made = {
        "slower there": ["month", "day", "region"],
        "slower that way": ["month", "day", "direction"],
        "slower at that hour": ["month", "day", "part", "direction"],
        "slower plane": ["tailnum"],
        "slower flight": ["flight", "carrier"],
    }
    for name, columns in made.items():
        inside, outside = means_by(given, columns, late, weight=5, frames=keys)
        train, test = _with(train, name, inside), _with(test, name, outside)
    return tuple(  # type: ignore[return-value]
        frame.assign(
            expected=(pace_usual + frame["slower that way"]) * frame["distance"],
            expected_there=(pace_usual + frame["slower there"]) * frame["distance"],
        )
        for frame, pace_usual in zip((train, test), usual, strict=True)
    )


def _placed(flights: pd.DataFrame, airports: pd.DataFrame) -> pd.DataFrame:
    places = airports.set_index("faa")[["lat", "lon", "tz"]]
    joined = flights.join(places, on="dest")
    minutes = {
        name: joined[f"sched_{name}_time"] // 100 * 60 + joined[f"sched_{name}_time"] % 100
        for name in ("dep", "arr")
    }
    zone = (joined["tz"].fillna(-5) + 5) * 60
    planned = (minutes["arr"] - minutes["dep"] - zone) % 1440
    return joined.assign(planned=planned, day_of_year=joined["month"] * 31 + joined["day"])


def _regions(flights: pd.DataFrame) -> pd.DataFrame:
    place = flights[["lat", "lon"]].fillna(0)
    region = (place["lat"] // 6 * 100 + place["lon"] // 10).astype(int)
    direction = np.arctan2(place["lat"] - 40.7, place["lon"] + 74.0)
    part = flights["sched_dep_time"] // 600
    return flights.assign(region=region, direction=(direction / 0.5).round().astype(int), part=part)


def _with(frame: pd.DataFrame, name: str, cells: "pd.Series[float]") -> pd.DataFrame:
    return frame.assign(**{name: cells.to_numpy()})
