"""Laboratory values as numbers in one unit; then what was not measured, where that matters."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.references import Given, Reference
from mle_ideator.benchmarks.references.encoding import Pair, as_given
from mle_ideator.benchmarks.references.tabular import ladder

LABS = ["crp", "lactate", "creatinine", "d_dimer", "co2", "troponin", "nt_probnp"]
TO_USUAL = {"crp": 10.0, "creatinine": 88.4}
"""From the units of ward `lake` to those of the others."""
ROUTINE = ("airport", "west")


def references() -> Iterator[Reference]:
    return ladder(features, full)


def features(given: Given) -> Pair:
    """All laboratory values as logarithms in one unit, half of the least one where it is told."""
    train, test = as_given(given)
    return _with_numbers(train), _with_numbers(test)


def full(given: Given) -> Pair:
    """With what was measured in wards that measure by need, and the mean of all that is known."""
    train, test = features(given)
    mean, deviation = train[LABS].mean(), train[LABS].std()
    scaled = [(frame[LABS] - mean) / deviation for frame in (train, test)]
    return _with_reasons(train, scaled[0]), _with_reasons(test, scaled[1])


def _with_numbers(patients: pd.DataFrame) -> pd.DataFrame:
    made = patients.copy()
    for name in LABS:
        text = patients[name].astype(str)
        low = text.str.startswith("<")
        value = pd.to_numeric(text.str.lstrip("<"), errors="coerce")
        value = value.where(patients["ward"] != "lake", value * TO_USUAL.get(name, 1.0))
        made[name] = np.log(value.where(~low, value / 2))
    return made


def _with_reasons(patients: pd.DataFrame, scaled: pd.DataFrame) -> pd.DataFrame:
    by_need = ~patients["ward"].isin(ROUTINE)
    asked = patients[LABS].notna()
    reasons = asked.where(by_need, 0.5).astype(float).add_prefix("asked for ")
    # In wards that measure by need an empty cell is about as good as a low value.
    unknown = np.where(by_need, -0.7, 0.0)
    filled = pd.DataFrame(np.where(asked, scaled, unknown[:, None]), scaled.index, LABS)
    return pd.concat([patients, reasons, filled.add_suffix(" or reason")], axis=1).assign(
        asked=asked.sum(axis=1).where(by_need, 3.5),
        mean=filled.mean(axis=1),
    )
