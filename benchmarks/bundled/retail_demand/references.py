"""The calendar joined; then empty shelves told, and levels learnt where shelves were full."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.references import Given, Reference, models
from mle_ideator.benchmarks.references.encoding import Pair, as_given, means_by
from mle_ideator.benchmarks.references.tabular import ladder, rung

SERIES = ["store", "item"]


def references() -> Iterator[Reference]:
    yield from ladder(features, full)
    more = [models.grid()[name] for name in ("slow", "slow small leaves", "slow penalty")]
    yield from rung("features", more, features)


def features(given: Given) -> Pair:
    """With holidays, the days about them, school breaks, and the mean of the item in the store."""
    train, test = as_given(given)
    calendar = _days(given.tables["calendar"])
    sold = given.y.astype(float).map(np.log1p)
    usual = means_by(given, SERIES, sold)
    train, test = train.merge(calendar, "left", "date"), test.merge(calendar, "left", "date")
    return train.assign(usual=usual[0]), test.assign(usual=usual[1])


def full(given: Given) -> Pair:
    """With empty shelves, days of a promotion, discounts, and means of days with full shelves."""
    train, test = features(given)
    whole = pd.concat([train, test], ignore_index=True)
    whole["empty"] = _empty(whole, given.tables["stock_outs"])
    whole["promotion day"] = _days_of_promotion(whole)
    whole["discount"] = np.log(whole["price"] / whole.groupby("item")["price"].transform("max"))
    train, test = whole.iloc[: len(train)], whole.iloc[len(train) :].reset_index(drop=True)
    for keys in (SERIES, [*SERIES, "weekday"], ["item", "weekday"], ["item", "promotion"]):
        name = f"sold by {' '.join(keys)}"
        train, test = _with_mean(given, (train, test), keys, name)
    return train, test


def _with_mean(given: Given, pair: Pair, keys: list[str], name: str) -> Pair:
    """The mean log of sales by `keys`, of the rows with full shelves."""
    train, test = pair
    full_shelf = (~train["empty"]).astype(float)
    sold = given.y.astype(float).map(np.log1p) * full_shelf
    above = means_by(given, keys, sold, weight=2, frames=pair)
    below = means_by(given, keys, full_shelf, weight=2, frames=pair)
    means = [over / under for over, under in zip(above, below, strict=True)]
    return train.assign(**{name: means[0]}), test.assign(**{name: means[1]})


def _days(calendar: pd.DataFrame) -> pd.DataFrame:
    off = calendar["holiday"].fillna("") != ""
    before = off.shift(-1, fill_value=False) | off.shift(-2, fill_value=False)
    weekday = pd.to_datetime(calendar["date"]).dt.dayofweek
    return calendar.assign(off=off, before=before & ~off, weekday=weekday).drop(columns="holiday")


def _empty(sales: pd.DataFrame, outs: pd.DataFrame) -> "pd.Series[bool]":
    joined = sales[[*SERIES, "date"]].reset_index().merge(outs, "left", SERIES)
    within = joined["date"].between(joined["first"], joined["last"])
    return within.groupby(joined["index"]).any()


def _days_of_promotion(sales: pd.DataFrame) -> "pd.Series[int]":
    """1 on the first day of a promotion, and so on; 0 without one."""
    ordered = sales.sort_values("date")
    begins = (ordered["promotion"] == 0).groupby([ordered[key] for key in SERIES]).cumsum()
    spell = [*(ordered[key] for key in SERIES), begins]
    return ordered["promotion"].groupby(spell).cumsum()
