"""Without the column that knows the outcome; then where a person stands within the branch."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.references import Given, Reference
from mle_ideator.benchmarks.references.encoding import Pair, as_given
from mle_ideator.benchmarks.references.tabular import ladder

LEVELS = ("income", "amount", "rent", "score")


def references() -> Iterator[Reference]:
    return ladder(features, full)


def features(given: Given) -> Pair:
    """Without letters and branch; amounts as a share of the income."""
    train, test = as_given(given)
    return _shares(train), _shares(test)


def full(given: Given) -> Pair:
    """With income, amount, rent and score in deviations from the branch's mean."""
    train, test = as_given(given)
    return _within_branch(train), _within_branch(test)


def _shares(loans: pd.DataFrame) -> pd.DataFrame:
    made = loans.drop(columns=["reminders", "branch"])
    return made.assign(
        amount_share=np.log(loans["amount"] / loans["income"]),
        rent_share=np.log((loans["rent"] + 1) / loans["income"]),
    )


def _within_branch(loans: pd.DataFrame) -> pd.DataFrame:
    made = _shares(loans)
    for name in LEVELS:
        values = loans[name] if name == "score" else np.log(loans[name] + 1)
        mean = values.groupby(loans["branch"]).transform("mean")
        made[f"{name} within"] = values - mean
    return made.drop(columns=["income", "amount", "rent", "score"])
