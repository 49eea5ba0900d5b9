"""Weekdays and holidays first; then the trend, which trees do not carry on beyond the last day."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd
from pandas.tseries.holiday import USFederalHolidayCalendar

from mle_ideator.benchmarks.references import Given, Reference, models
from mle_ideator.benchmarks.references.encoding import Pair, as_given
from mle_ideator.benchmarks.references.outputs import Array
from mle_ideator.benchmarks.references.tabular import rung

DAY = pd.Timedelta(days=1)
SINCE = "2004-01-01"
"""The trend is fitted to the days after this: before, riders became fewer for a while."""


def references() -> Iterator[Reference]:
    yield from rung("weak", models.weak(), as_given)
    yield from rung("boosting", models.boosted(), as_given)
    yield from rung("features", models.engineered(), features)
    for reference in rung("full", models.best(), full, to_trend):
        name = f"{reference.name} on trend since {SINCE[:4]}"
        yield Reference(name, "full", partial(as_riders, reference))


def features(given: Given) -> Pair:
    """With holidays, and what is near them."""
    train, test = as_given(given)
    return _with_calendar(train), _with_calendar(test)


def full(given: Given) -> Pair:
    """The same without what only says how late it is."""
    late = ["date", "week"]
    train, test = (frame.drop(columns=late) for frame in features(given))
    return train, test


def to_trend(given: Given) -> "pd.Series[float]":
    """Riders as a share of the trend."""
    return given.y / _trend(given, given.train)


def as_riders(reference: Reference, given: Given) -> dict[str, Array]:
    predicted = reference.predict(given)
    return {name: of * _trend(given, given.test) for name, of in predicted.items()}


def _trend(given: Given, frame: pd.DataFrame) -> Array:
    """A straight line through working days, flat before it begins."""
    days = _number(given.train["date"])
    working = (pd.to_datetime(given.train["date"]).dt.day_of_week < 5) & (given.y > 10)
    kept = working & (given.train["date"] >= SINCE)
    line = np.polynomial.Polynomial.fit(days[kept], given.y[kept], 1)
    return np.asarray(line(_number(frame["date"]).clip(lower=days[kept].min())))


def _number(dates: "pd.Series[str]") -> "pd.Series[float]":
    return (pd.to_datetime(dates) - pd.Timestamp("2001-01-01")) / DAY


def _with_calendar(frame: pd.DataFrame) -> pd.DataFrame:
    day = pd.to_datetime(frame["date"])
    free = USFederalHolidayCalendar().holidays("2000-12-01", "2017-01-31")
    month, of_month = day.dt.month, day.dt.day
    year_end = ((month == 12) & (of_month >= 22)) | ((month == 1) & (of_month <= 2))
    return frame.assign(
        weekday=day.dt.day_of_week,
        day_of_year=day.dt.day_of_year,
        month=month,
        holiday=day.isin(free).astype(int),
        after_holiday=day.isin(free + DAY).astype(int),
        before_holiday=day.isin(free - DAY).astype(int),
        year_end=year_end.astype(int) * of_month,
        thanksgiving=((month == 11) & of_month.between(22, 29)).astype(int) * day.dt.day_of_week,
        bad_weather=frame["weather_snow"] + frame["weather_storm"],
    )
