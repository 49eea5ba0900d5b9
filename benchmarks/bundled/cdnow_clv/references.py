"""Rates and sizes of purchases say a little more, and those of the last months more again."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.references import Given, Reference
from mle_ideator.benchmarks.references.encoding import Pair, as_given
from mle_ideator.benchmarks.references.tabular import ladder

KNOWN_UNTIL = pd.Timestamp("1997-09-30")


def references() -> Iterator[Reference]:
    return ladder(features, full, raw=without_names)


def without_names(given: Given) -> Pair:
    """The columns as they come, but the customer's number, which has no meaning."""
    train, test = as_given(given)
    return train.drop(columns="customer"), test.drop(columns="customer")


def features(given: Given) -> Pair:
    """With the time between purchases and the price of one."""
    train, test = without_names(given)
    return _with_rates(train), _with_rates(test)


def full(given: Given) -> Pair:
    """With what was bought in the last weeks and months, and how regularly."""
    past = given.tables["purchases"]
    past = past.assign(ago=(KNOWN_UNTIL - pd.to_datetime(past["date"])).dt.days)
    summed = _history(past)
    train, test = (
        pd.concat([pair, summed.loc[rows["customer"]].reset_index(drop=True)], axis=1)
        for pair, rows in zip(features(given), as_given(given), strict=True)
    )
    return train, test


def _with_rates(customers: pd.DataFrame) -> pd.DataFrame:
    active = customers["days_since_first"] - customers["days_since_last"]
    made = {
        "active": active,
        "gap": active / (customers["purchases"] - 1).clip(lower=1),
        "per purchase": customers["dollars"] / customers["purchases"],
        "per cd": customers["dollars"] / customers["cds"].clip(lower=1),
        "lateness": customers["days_since_last"] / (active + 1),
        "log dollars": np.log1p(customers["dollars"]),
    }
    return customers.assign(**made)


def _history(past: pd.DataFrame) -> pd.DataFrame:
    """By customer."""
    grouped = past.sort_values(["customer", "ago"]).groupby("customer")
    made = {
        "days": grouped["ago"].nunique(),
        "last dollars": grouped["dollars"].first(),
        "largest": grouped["dollars"].max(),
        "smallest": grouped["dollars"].min(),
        "spread": grouped["ago"].std().fillna(0),
        "second ago": grouped["ago"].nth(1).groupby(past["customer"]).first(),
    }
    for days in (14, 30, 60, 90, 150):
        late = past[past["ago"] < days].groupby("customer")["dollars"]
        made[f"dollars in {days}"] = late.sum()
        made[f"purchases in {days}"] = late.size()
    table = pd.DataFrame(made)
    table = table.fillna({name: 0 for name in table.columns if " in " in name})
    decay = (past["dollars"].map(np.log1p) * 0.98 ** past["ago"]).groupby(past["customer"]).sum()
    return table.assign(faded=decay)
