"""What ids and trades did before, amounts against what is usual; then labels that went missing.

The full ones know from the description how many disputes of a channel were recorded: they count
each recorded one for more, and divide their predictions by that share.
"""

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.references import Given, Reference
from mle_ideator.benchmarks.references.encoding import Pair, as_given, means_by
from mle_ideator.benchmarks.references.tabular import ladder

RECORDED = {"phone": 0.5, "post": 0.6, "shop": 0.95, "web": 0.95}
IDS = ("merchant", "customer")


def references() -> Iterator[Reference]:
    for reference in ladder(features, full):
        if reference.rung != "full":
            yield reference
        else:
            yield Reference(reference.name, "full", partial(_corrected, reference))


def features(given: Given) -> Pair:
    """Ids as shrunken means; abroad, at night, and how far the amount is from what is usual."""
    train, test = as_given(given)
    whole = pd.concat([train, test])
    usual = np.log(whole["amount"]).groupby(whole["merchant"]).median()
    train, test = (_with_surprise(frame, usual) for frame in (train, test))
    for key in (*IDS, "trade"):
        train[f"{key} mean"], test[f"{key} mean"] = means_by(given, [key])
    return train.drop(columns=list(IDS)), test.drop(columns=list(IDS))


def full(given: Given) -> Pair:
    """With means of what disputes would be if all were recorded, and how often ids occur."""
    train, test = features(given)
    disputes = pd.to_numeric(given.y) / given.train["channel"].map(RECORDED)
    for key in IDS:
        for weight in (5, 20):
            name = f"{key} {weight}"
            train[name], test[name] = means_by(given, [key], disputes, weight=weight)
        times = pd.concat([given.train[key], given.test[key]]).value_counts()
        train[f"{key} times"] = given.train[key].map(times)
        test[f"{key} times"] = given.test[key].map(times)
    return train, test


def _with_surprise(payments: pd.DataFrame, usual: "pd.Series[float]") -> pd.DataFrame:
    surprise = np.log(payments["amount"]) - payments["merchant"].map(usual)
    return payments.assign(
        surprise=surprise.abs(),
        abroad=payments["merchant_country"] != payments["customer_country"],
        night=(payments["minute"] < 300) | (payments["minute"] >= 1380),
    )


def _corrected(reference: Reference, given: Given) -> Mapping[str, np.ndarray]:
    predicted = reference.predict(given)
    recorded = given.test["channel"].map(RECORDED).to_numpy()
    return {name: np.clip(values / recorded, 0, 1) for name, values in predicted.items()}
