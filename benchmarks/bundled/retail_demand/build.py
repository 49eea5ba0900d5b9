"""Generated: daily sales of groceries; promotions, holidays, and shelves that were empty.

Demand is Poisson, with a mean that is gamma-distributed (shape 8) about the exponential of

    store + item + trend + weekday by item + one wave a year by item
    + uplift of the item (0.55 to 0.95) on promotion; its first day counts 1.3, each next 0.12 less
    − elasticity of the item·log(price / usual price)
    + 0.6 on the two days before a holiday, −1.6 on it; 0.25 in school breaks at the sea

Sales are demand but for empty shelves, where 0 to 15 % of it was sold: `SPELLS` spells of 2 to 7
days for each item in each store, all in train.csv; stock_outs.csv tells them. In the last seven
weeks, test.csv, shelves were full. The oracle knows the mean.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.building import Frames

STORES = {"airport": 0, "beach": 1, "centre": 0, "harbour": 1, "hill": 0, "suburb": 0}
"""Is it at the sea?"""
ITEMS = [
    "bread",
    "butter",
    "charcoal",
    "coffee",
    "ice cream",
    "lemonade",
    "milk",
    "oranges",
    "soup",
]
ITEMS += ["tea"]
SERIES = (len(STORES), len(ITEMS))
DAYS, TEST_DAYS, SPELLS = 400, 49, 12
DATES = np.datetime64("2023-06-01") + np.arange(DAYS)
HOLIDAYS = {
    "midsummer": ["2023-06-23", "2024-06-21"],
    "harvest": ["2023-10-02"],
    "lights": ["2023-12-13"],
    "christmas": ["2023-12-25", "2023-12-26"],
    "new year": ["2024-01-01"],
    "easter": ["2024-04-01"],
    "spring": ["2024-05-01", "2024-05-29"],
    "founding": ["2023-06-05", "2024-06-05"],
}
BREAKS = [("2023-07-03", "2023-08-11"), ("2023-12-22", "2024-01-05"), ("2024-03-25", "2024-04-05")]
BREAKS += [("2024-06-17", "2024-07-04")]
TARGET, EXPECTED = "sold", "expected"


def build(root: Path, rng: np.random.Generator) -> Frames:
    sales = simulate(rng).drop(columns=EXPECTED)
    in_test = sales["date"] >= str(DATES[DAYS - TEST_DAYS])
    train, test = sales[~in_test].copy(), sales[in_test]
    outs = _stock_outs(rng)
    train[TARGET] = _sold(train, outs, rng)
    return Frames(train, test, {"calendar": calendar(), "stock_outs": outs})


def simulate(rng: np.random.Generator) -> pd.DataFrame:
    """A row a store, item and day, with what would be sold and its mean."""
    store, item, day = (index.ravel() for index in np.indices((*SERIES, DAYS)))
    promotion, price = (values.ravel() for values in _offers(rng))
    usual = np.exp(0.8 + 0.5 * rng.standard_normal(len(ITEMS)))
    odds = _levels(rng)[store, item] + _seasons(rng)[item, day] + _holidays()[store, day]
    uplift = 0.75 + 0.2 * (2 * rng.random(len(ITEMS)) - 1)
    odds += uplift[item] * np.where(promotion > 0, 1.42 - 0.12 * promotion, 0)
    odds -= (1.2 + rng.random(len(ITEMS)))[item] * np.log(price)
    mean = np.exp(odds)
    return pd.DataFrame(
        {
            "date": DATES.astype(str)[day],
            "store": np.array(list(STORES))[store],
            "item": np.array(ITEMS)[item],
            "price": (usual[item] * price).round(2),
            "promotion": (promotion > 0).astype(int),
            EXPECTED: mean,
            TARGET: rng.poisson(mean * rng.gamma(8.0, size=mean.size) / 8),
        }
    )


def calendar() -> pd.DataFrame:
    names = {date: name for name, dates in HOLIDAYS.items() for date in dates}
    free = [any(first <= date <= last for first, last in BREAKS) for date in DATES.astype(str)]
    return pd.DataFrame(
        {
            "date": DATES.astype(str),
            "holiday": [names.get(date, "") for date in DATES.astype(str)],
            "school_break": np.array(free).astype(int),
        }
    )


def _levels(rng: np.random.Generator) -> np.ndarray:
    of_store, of_item = 0.5 * rng.standard_normal(len(STORES)), rng.standard_normal(len(ITEMS))
    own = 0.3 * rng.standard_normal(SERIES)
    return np.asarray(2.2 + of_store[:, None] + 0.7 * of_item + own)


def _seasons(rng: np.random.Generator) -> np.ndarray:
    """By item and day: the trend, the day of the week, and one wave a year."""
    day = np.arange(DAYS)
    by_weekday = 0.25 * rng.standard_normal((len(ITEMS), 7))
    by_weekday[:, 1:3] += 0.3  # the first day is a Thursday
    start = 2 * np.pi * rng.random((len(ITEMS), 1))
    wave = 0.5 * np.sin(2 * np.pi * day / 365 + start)
    return np.asarray(by_weekday[:, day % 7] + wave + 0.25 * day / DAYS)


def _holidays() -> np.ndarray:
    """By store and day."""
    table = calendar()
    off = (table["holiday"] != "").to_numpy()
    before = (np.append(off[1:], False) | np.append(off[2:], [False] * 2)) & ~off
    at_sea = np.array(list(STORES.values()))[:, None]
    return np.asarray(0.6 * before - 1.6 * off + 0.25 * at_sea * table["school_break"].to_numpy())


def _offers(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """By store, item and day: which day of a promotion it is, 0 for none; price over the usual."""
    promotion, price = np.zeros((*SERIES, DAYS)), np.ones((*SERIES, DAYS))
    for series in np.ndindex(SERIES):
        for start in 5 + np.cumsum(rng.integers(12, 40, size=30)):
            length = rng.integers(4, 9)
            days = np.arange(start, min(start + length, DAYS))
            promotion[series][days] = 1 + days - start
            price[series][days] = (1, 0.9, 0.8, 0.7)[rng.integers(4)]
    return promotion, price


def _stock_outs(rng: np.random.Generator) -> pd.DataFrame:
    """A row a spell; those of one series may touch."""
    rows = []
    for store, item in np.ndindex(SERIES):
        for start in np.sort(rng.integers(0, DAYS - TEST_DAYS - 7, size=SPELLS)):
            last = start + rng.integers(1, 7)
            rows.append((list(STORES)[store], ITEMS[item], str(DATES[start]), str(DATES[last])))
    return pd.DataFrame(rows, columns=["store", "item", "first", "last"])


def _sold(demand: pd.DataFrame, outs: pd.DataFrame, rng: np.random.Generator) -> pd.Series:
    spells = outs.groupby(["store", "item"])
    dates = demand["date"]
    empty = pd.Series(False, index=demand.index)
    for series, rows in demand.groupby(["store", "item"]):
        for first, last in spells.get_group(series)[["first", "last"]].itertuples(index=False):
            empty[rows.index] |= dates[rows.index].between(first, last)
    left = np.where(empty, 0.15 * rng.random(len(demand)), 1)
    sold: pd.Series = np.floor(demand[TARGET] * left).astype(int)
    return sold
