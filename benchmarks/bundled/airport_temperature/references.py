"""The same hour of the day before and after says most, then how the pressure has changed."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.references import Given, Reference
from mle_ideator.benchmarks.references.encoding import Pair, as_given
from mle_ideator.benchmarks.references.tabular import ladder

DAY = pd.Timedelta(days=1)
PLACE = ["airport", "when"]


def references() -> Iterator[Reference]:
    return ladder(features, full)


def features(given: Given) -> Pair:
    """With the temperature 24 hours before, if it is known."""
    known = _timed(given.train)[[*PLACE, "temp"]]
    return tuple(  # type: ignore[return-value]
        _seasonal(frame).assign(before=_at(_timed(frame), known, -DAY, "temp"))
        for frame in as_given(given)
    )


def full(given: Given) -> Pair:
    """With 24 and 48 hours before and after, the days' means, and changes of the weather."""
    known = _timed(given.train)[[*PLACE, "temp"]]
    days = known.assign(when=known["when"].dt.floor("D")).groupby(PLACE)["temp"].mean()
    weather = pd.concat([_timed(frame) for frame in as_given(given)])
    pairs = []
    for frame in features(given):
        timed = _timed(frame)
        daily = timed.assign(when=timed["when"].dt.floor("D"))
        made = {
            "after": _at(timed, known, DAY, "temp"),
            "two before": _at(timed, known, -2 * DAY, "temp"),
            "two after": _at(timed, known, 2 * DAY, "temp"),
            "mean before": _at(daily, days.reset_index(), -DAY, "temp"),
            "mean after": _at(daily, days.reset_index(), DAY, "temp"),
        }
        made["between"] = pd.concat([frame["before"], made["after"]], axis=1).mean(axis=1)
        made["last hour before"] = _at(daily, known, -pd.Timedelta(hours=1), "temp")
        made["first hour after"] = _at(daily, known, DAY, "temp")
        for hours in (-24, -12, -6, -3, 3, 6, 12, 24):
            at = _at(timed, weather, pd.Timedelta(hours=hours), "pressure")
            made[f"pressure {hours}"] = at - frame["pressure"]
        for hours in (-6, 6):
            away = pd.Timedelta(hours=hours)
            made[f"wind {hours}"] = _at(timed, weather, away, "wind_speed")
            made[f"direction {hours}"] = _at(timed, weather, away, "wind_dir")
        pairs.append(frame.assign(**made))
    return pairs[0], pairs[1]


def _timed(frame: pd.DataFrame) -> pd.DataFrame:
    when = pd.to_datetime(frame["date"]) + pd.to_timedelta(frame["hour"], unit="h")
    return frame.assign(when=when)


def _seasonal(frame: pd.DataFrame) -> pd.DataFrame:
    angle = np.deg2rad(frame["wind_dir"])
    return frame.assign(north=np.cos(angle), east=np.sin(angle))


def _at(
    timed: pd.DataFrame, known: pd.DataFrame, away: pd.Timedelta, name: str
) -> "pd.Series[float]":
    """A known value at the same airport, so much time away."""
    asked = timed[["airport"]].assign(when=timed["when"] + away)
    found = asked.merge(known[[*PLACE, name]].drop_duplicates(PLACE), how="left", on=PLACE)
    return pd.Series(found[name].to_numpy(dtype=float), index=timed.index)
