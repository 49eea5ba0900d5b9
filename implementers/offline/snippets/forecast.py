"""Forecasts: every row may use only what was known when its own forecast was made.

The test rows are forecast together, from the end of the training rows. So the training time is
cut into blocks as long as the test, and each training row sees only targets before its block.
"""

# Column names are strings in CSV files, and scikit-learn has no types.
# mypy: disable-error-code="arg-type, no-any-return, operator"

from __future__ import annotations

import numpy as np
import pandas as pd


def moments_of(column: pd.Series) -> np.ndarray:
    """Times as whole numbers: months since 1970 where steps are that long, else seconds."""
    dates = pd.to_datetime(column, errors="coerce", format="mixed").astype("datetime64[ns]")
    dates = dates.ffill().bfill()
    step = pd.Series(dates.sort_values().unique()).diff().median()
    if step >= pd.Timedelta(days=27):
        return ((dates.dt.year - 1970) * 12 + dates.dt.month - 1).to_numpy(np.int64)
    return ((dates - pd.Timestamp("1970-01-01")) // pd.Timedelta(seconds=1)).to_numpy(np.int64)


def seasons_of(moments: np.ndarray) -> dict[str, int]:
    """The seasons that are longer than the usual step and fit twice into the history."""
    distinct = np.unique(moments)
    if len(distinct) < 3:
        return {}
    step, span = np.median(np.diff(distinct)), distinct[-1] - distinct[0]
    names = {"day": 86_400, "week": 7 * 86_400, "52 weeks": 364 * 86_400}
    seasons = {"year": 12} if step < 1000 and span < 100_000 else names
    return {name: length for name, length in seasons.items() if step <= length <= span / 2}


def block_starts(moments: np.ndarray, train_rows: int) -> np.ndarray:
    """For each row, the first moment of its block; the test rows are the last block."""
    test = moments[train_rows:]
    length = test.max() - test.min() + max(int(np.median(np.diff(np.unique(moments)))), 1)
    blocks_back = np.maximum(-((moments - test.min()) // length), 0)
    return test.min() - blocks_back * length


def forward_folds(
    moments: np.ndarray, train_rows: int, count: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The last blocks of the training time, each validated by a model of all rows before it.

    Where the training time is shorter than three blocks, its last fifth is the only fold.
    """
    starts = block_starts(moments, train_rows)[:train_rows]
    if len(np.unique(starts)) < 4:
        known = np.sort(moments[:train_rows])
        starts = np.where(moments[:train_rows] >= known[int(0.8 * train_rows)], 1, 0)
    chosen = np.unique(starts)[1:][-count:]
    return [(np.flatnonzero(starts < start), np.flatnonzero(starts == start)) for start in chosen]


def series_names(rows: pd.DataFrame, names: list[str]) -> np.ndarray:
    """One name a row for the series that it belongs to."""
    if not names:
        return np.full(len(rows), "")
    return rows[names].astype(str).agg(" / ".join, axis=1).to_numpy(object)


def history(moments: np.ndarray, series: np.ndarray, y: np.ndarray) -> pd.DataFrame:
    """The known targets: one line a moment, one column a series."""
    known = pd.DataFrame({"moment": moments[: len(y)], "series": series[: len(y)], "y": y})
    return known.pivot_table(index="moment", columns="series", values="y", aggfunc="mean")


def look_up(table: pd.DataFrame, moments: np.ndarray, series: np.ndarray) -> np.ndarray:
    """The table's values at the given moments and series; missing where there is none."""
    rows, columns = table.index.get_indexer(moments), table.columns.get_indexer(series)
    return np.where((rows >= 0) & (columns >= 0), table.to_numpy()[rows, columns], np.nan)


def lag_features(moments: np.ndarray, series: np.ndarray, y: np.ndarray) -> pd.DataFrame:
    """The last known targets one, two, … seasons apart from the row's moment, and their mean."""
    starts, table, found = block_starts(moments, len(y)), history(moments, series, y), {}
    for name, length in seasons_of(moments[: len(y)]).items():
        ahead = np.maximum((moments - starts) // length + 1, 1)
        lags = [look_up(table, moments - (ahead + more) * length, series) for more in range(4)]
        for number, values in enumerate(lags[:3]):
            found[f"target {number + 1} known {name} back"] = values
        found[f"target mean at this time of {name}"] = row_means(np.column_stack(lags))
    found["time ahead"] = (moments - starts).astype(float)
    return pd.DataFrame(found)


def row_means(values: np.ndarray) -> np.ndarray:
    """Means of what is not missing."""
    count = np.isfinite(values).sum(axis=1)
    return np.where(count > 0, np.nansum(values, axis=1) / np.maximum(count, 1), np.nan)


def rolling_features(moments: np.ndarray, series: np.ndarray, y: np.ndarray) -> pd.DataFrame:
    """Mean and spread of the last known targets before the row's block, in three windows."""
    starts, table, found = block_starts(moments, len(y)), history(moments, series, y), {}
    origins = np.unique(starts)
    for window in (7, 28, 91):
        rolled = table.rolling(window, min_periods=max(window // 2, 2))
        for name, values in (("mean", rolled.mean()), ("spread", rolled.std())):
            known = values.ffill().reindex(origins - 1, method="ffill").set_axis(origins)
            found[f"target {name} of the last {window}"] = look_up(known, starts, series)
    return pd.DataFrame(found)


def gap_folds(moments: np.ndarray, count: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Folds of whole moments that lie, like those of the test rows, between two known ones.

    Where fewer than a tenth of the moments do, all moments take part.
    """
    known = np.unique(moments)
    step = int(np.median(np.diff(known)))
    between = known[np.isin(known - step, known) & np.isin(known + step, known)]
    chosen = between if len(between) >= max(len(known) // 10, count) else known
    numbers = np.random.default_rng(seed).permutation(np.arange(len(chosen)) % count)
    parts = [np.isin(moments, chosen[numbers == number]) for number in range(count)]
    return [(np.flatnonzero(~part), np.flatnonzero(part)) for part in parts]


def neighbour_features(moments: np.ndarray, series: np.ndarray, y: np.ndarray) -> pd.DataFrame:
    """For rows in gaps of time: the nearest known targets before and after, and between them.

    A row's own target is never used. `target between` is on the line through the two.
    """
    whole = history(moments, series, y).reindex(np.unique(moments))
    at = whole.notna().mul(whole.index, axis=0).where(whole.notna())
    sides = []
    for step, fill in ((1, "ffill"), (-1, "bfill")):
        value, moment = (getattr(table.shift(step), fill)() for table in (whole, at))
        distance = np.abs(moments - look_up(moment, moments, series))
        sides.append((look_up(value, moments, series), distance))
    (before, since), (after, until) = sides
    between = (before * until + after * since) / (since + until)
    return pd.DataFrame(
        {
            "target before": before,
            "target after": after,
            "target between": np.where(
                np.isnan(between), row_means(np.column_stack([before, after])), between
            ),
            "change of target": after - before,
        }
    )


def surrounding_features(moments: np.ndarray, series: np.ndarray, y: np.ndarray) -> pd.DataFrame:
    """For rows in gaps of time: means of the known targets around the row, without its own."""
    whole, found = history(moments, series, y).reindex(np.unique(moments)), {}
    for width in (3, 7, 15):
        around = whole.rolling(width, center=True, min_periods=1)
        total = around.sum() - whole.fillna(0)
        count = around.count() - whole.notna()
        found[f"target mean of {width} around"] = look_up(
            total / count.where(count > 0), moments, series
        )
    return pd.DataFrame(found)
