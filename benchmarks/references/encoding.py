"""Any table as numbers, and what groups of training rows say of their target.

Everything is learnt from the training rows (and, for spelling out categories, the test rows'
features, which agents see too).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from mle_ideator.benchmarks.references.values import Given

Pair = tuple[pd.DataFrame, pd.DataFrame]
"""Features of the training and of the test rows: the same columns, rows in the files' order."""

MOST_LEVELS = 25
"""So many levels of a category get a column of their own where numbers are needed."""
_FOLDS = 5


def as_given(given: Given) -> Pair:
    """The columns as they come."""
    return given.train[given.features], given.test[given.features]


def codes(pair: Pair) -> Pair:
    """For trees: numbers as they are, dates taken apart, categories by how frequent they are."""
    return _both(pair, _code_columns)


def dense(pair: Pair) -> Pair:
    """For lines and distances: standardised, blanks filled and marked, categories spread out."""
    train, test = _both(pair, _dense_columns)
    mean, deviation = train.mean(), train.std().replace(0, 1)
    scaled = ((frame - mean) / deviation for frame in (train, test))
    return tuple(frame.clip(-10, 10) for frame in scaled)  # type: ignore[return-value]


def numbers_only(pair: Pair) -> Pair:
    """The numeric columns; if there are none, the codes of all."""
    names = list(pair[0].select_dtypes("number"))
    return (pair[0][names], pair[1][names]) if names else codes(pair)


def means_by(
    given: Given,
    keys: Sequence[str],
    target: pd.Series[Any] | None = None,
    *,
    weight: float = 10.0,
    frames: Pair | None = None,
    seed: int = 0,
) -> tuple[pd.Series[float], pd.Series[float]]:
    """Mean target of the rows with equal `keys`, shrunken to the mean of all by `weight` rows.

    For training rows it is taken out of fold (five), so that a row's own target is not in it. The
    target is by default the first one, as a number. `frames` hold the keys, if they are made.
    """
    train, test = frames or (given.train, given.test)
    y = pd.to_numeric(given.y if target is None else target).astype(float)
    fold = np.random.default_rng(seed).integers(0, _FOLDS, len(train))
    inside = pd.Series(0.0, index=train.index)
    for number in range(_FOLDS):
        kept, held = fold != number, fold == number
        inside[held] = _shrunken(train[kept], y[kept], keys, weight, train[held])
    return inside, _shrunken(train, y, keys, weight, test)


def _shrunken(
    frame: pd.DataFrame, y: pd.Series[float], keys: Sequence[str], weight: float, of: pd.DataFrame
) -> pd.Series[float]:
    overall = y.mean()
    by = [frame[key] for key in keys]
    grouped = y.groupby(by, observed=True, dropna=False).agg(["sum", "count"])
    shrunken = (grouped["sum"] + weight * overall) / (grouped["count"] + weight)
    means = shrunken.rename("mean").reset_index()
    joined = of[list(keys)].merge(means, how="left", on=list(keys))["mean"]
    return pd.Series(joined.fillna(overall).to_numpy(), index=of.index)


def _both(pair: Pair, columns: Any) -> Pair:
    """Apply to both at once, so that they get the same columns."""
    rows = len(pair[0])
    whole = pd.concat(pair, ignore_index=True)
    parts = [columns(whole[name], rows) for name in whole.columns]
    result = pd.concat(parts, axis=1).astype(float)
    result = result.loc[:, result.nunique() > 1]  # constant columns say nothing
    return result.iloc[:rows], result.iloc[rows:].reset_index(drop=True)


def _code_columns(cells: pd.Series[Any], rows: int) -> pd.DataFrame:
    if pd.api.types.is_numeric_dtype(cells):
        return cells.to_frame()
    days = _days(cells)
    if days is not None:
        return days
    text = cells.astype(object).fillna("").astype(str)
    order = text.iloc[:rows].value_counts().reset_index()
    order.columns = pd.Index(["level", "times"])
    ranked = order.sort_values(["times", "level"], ascending=[False, True])["level"]
    made = {cells.name: text.map({level: place for place, level in enumerate(ranked)})}
    if text.str.contains(" ").mean() > 0.5:
        made[f"{cells.name} length"] = text.str.len()
        made[f"{cells.name} words"] = text.str.count(" ")
    return pd.DataFrame(made)


def _dense_columns(cells: pd.Series[Any], rows: int) -> pd.DataFrame:
    if pd.api.types.is_numeric_dtype(cells):
        return _filled(cells, rows)
    days = _days(cells)
    if days is not None:
        return pd.concat([_filled(days[name], rows) for name in days], axis=1)
    text = cells.astype(object).fillna("").astype(str)
    counts = text.iloc[:rows].value_counts().reset_index()
    counts.columns = pd.Index(["level", "times"])
    levels = counts.sort_values(["times", "level"], ascending=[False, True])["level"]
    return pd.DataFrame({f"{cells.name}={one}": text == one for one in levels[:MOST_LEVELS]})


def _filled(cells: pd.Series[Any], rows: int) -> pd.DataFrame:
    numbers = cells.astype(float).replace([np.inf, -np.inf], np.nan)
    middle = numbers.iloc[:rows].median()
    made: dict[Any, Any] = {cells.name: numbers.fillna(0.0 if np.isnan(middle) else middle)}
    if numbers.isna().any():
        made[f"{cells.name} blank"] = numbers.isna()
    return pd.DataFrame(made)


def _days(cells: pd.Series[Any]) -> pd.DataFrame | None:
    """A column of ISO dates as numbers; `None` if it is none."""
    text = cells.dropna().astype(str)
    if not len(text) or not text.str.match(r"\d{4}-\d{2}-\d{2}").all():
        return None
    when = pd.to_datetime(cells, format="ISO8601")
    name = cells.name
    days = {
        f"{name} day": (when - pd.Timestamp("1970-01-01")).dt.total_seconds() / 86_400,
        f"{name} of year": when.dt.day_of_year,
        f"{name} weekday": when.dt.day_of_week,
        f"{name} hour": when.dt.hour,
    }
    return pd.DataFrame(days)
