"""How often the same person went in other years says most."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.references import Given, Reference
from mle_ideator.benchmarks.references.encoding import Pair, as_given
from mle_ideator.benchmarks.references.tabular import ladder


def references() -> Iterator[Reference]:
    return ladder(features, full, raw=without_names)


def without_names(given: Given) -> Pair:
    """The columns as they come, but the person's number, which has no meaning."""
    train, test = as_given(given)
    return train.drop(columns="person"), test.drop(columns="person")


def features(given: Given) -> Pair:
    """With the mean of the person's other years."""
    train, test = without_names(given)
    others = _other_years(given.train, given.test)
    return tuple(  # type: ignore[return-value]
        frame.assign(mean=_mean(known, 0))
        for frame, known in zip((train, test), others, strict=True)
    )


def full(given: Given) -> Pair:
    """With shrunken means, the nearest year, and how much the years differ."""
    train, test = features(given)
    others = _other_years(given.train, given.test)
    pairs = []
    for frame, known in zip((train, test), others, strict=True):
        made = {f"shrunken {years}": _mean(known, years) for years in (1, 2)}
        made["log"] = np.log1p(known).mean(axis=1)
        made["least"], made["most"] = known.min(axis=1), known.max(axis=1)
        made["years"] = known.notna().sum(axis=1)
        made["years without"] = (known == 0).sum(axis=1)
        for away in (-1, -2, 1):
            near = frame["year"] + away
            at = [known[year].where(near == year) for year in known]
            made[f"year {away}"] = pd.concat(at, axis=1).sum(axis=1, min_count=1)
        pairs.append(frame.assign(**made))
    return pairs[0], pairs[1]


def _other_years(train: pd.DataFrame, test: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Visits by year of the row's person, blank where unknown and in the row's own year."""
    by_year = train.pivot_table(index="person", columns="year", values="visits")
    tables = []
    for rows in (train, test):
        known = by_year.reindex(rows["person"]).reset_index(drop=True)
        tables.append(known.apply(lambda year, rows=rows: year.where(rows["year"] != year.name)))
    return tables[0], tables[1]


def _mean(known: pd.DataFrame, years: int) -> "pd.Series[float]":
    """Mean over the known years, and over so many average ones."""
    average = np.nanmean(known.to_numpy())
    mean: pd.Series[float] = known.sum(axis=1) + years * average
    return mean / (known.notna().sum(axis=1) + years)
