"""Prices as a share of what the day cost in the past: the season goes, what a room is stays."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.references import Given, Reference, models
from mle_ideator.benchmarks.references.encoding import Pair, as_given, means_by
from mle_ideator.benchmarks.references.tabular import rung


def references() -> Iterator[Reference]:
    yield from rung("weak", models.weak(), as_given)
    yield from rung("boosting", models.boosted(), without_date)
    yield from rung("features", models.engineered(), features)
    for reference in rung("full", models.best(), full, share):
        yield Reference(reference.name, "full", partial(as_prices, reference))


def without_date(given: Given) -> Pair:
    """Without the date, which test rows lie beyond; the past price of the day says enough."""
    train, test = (frame.drop(columns="arrival_date") for frame in as_given(given))
    return train, test


def features(given: Given) -> Pair:
    """With the weekday, the guests, the nights, and means of rooms and agents."""
    train, test = (_with_parts(frame) for frame in as_given(given))
    for key in ("agent", "reserved_room_type", "country"):
        train[f"{key} price"], test[f"{key} price"] = means_by(given, [key])
    return train, test


def full(given: Given) -> Pair:
    """The same with shares of the past price in place of prices."""
    train, test = (_with_parts(frame) for frame in as_given(given))
    relative = share(given)
    for key in (["agent"], ["reserved_room_type"], ["country"], ["company"],
                ["agent", "reserved_room_type"], ["market_segment", "reserved_room_type"],
                ["meal", "adults"]):  # fmt: skip
        name = f"{' '.join(key)} share"
        train[name], test[name] = means_by(given, key, relative)
    return train, test


def share(given: Given) -> "pd.Series[float]":
    """The price as a share of the mean price on that day of the year in the past."""
    return given.y / given.train["historical_adr"]


def as_prices(reference: Reference, given: Given) -> dict[str, "pd.Series[float]"]:
    predicted = reference.predict(given)
    return {name: of * given.test["historical_adr"] for name, of in predicted.items()}


def _with_parts(frame: pd.DataFrame) -> pd.DataFrame:
    day = pd.to_datetime(frame["arrival_date"])
    nights = frame["stays_in_weekend_nights"] + frame["stays_in_week_nights"]
    return frame.drop(columns="arrival_date").assign(
        weekday=day.dt.day_of_week,
        nights=nights,
        guests=frame["adults"] + frame["children"] + frame["babies"],
        weekend_share=frame["stays_in_weekend_nights"] / nights.clip(lower=1),
        log_lead=np.log1p(frame["lead_time"]),
        other_room=(frame["reserved_room_type"] != frame["assigned_room_type"]).astype(int),
    )
