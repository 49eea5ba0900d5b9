"""Features of train and test rows together. Each takes and returns frames with the same index."""

# Column names are strings in CSV files, and scikit-learn has no types.
# mypy: disable-error-code="arg-type, misc, no-any-return, operator, return-value"

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor


def numeric_columns(rows: pd.DataFrame, without: list[str]) -> pd.DataFrame:
    """All columns but those as numbers; what is no number, or too large to use, is missing."""
    columns = rows.drop(columns=[name for name in without if name in rows])
    numbers = columns.apply(pd.to_numeric, errors="coerce").astype(float)
    return numbers.where(numbers.abs() < 1e15).dropna(axis=1, how="all")


def level_columns(rows: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Categorical columns as text; a missing value is a level of its own."""
    return rows[names].astype(object).where(rows[names].notna(), "missing").astype(str)


def merge_rare_levels(levels: pd.DataFrame, at_least: int) -> pd.DataFrame:
    """Levels with fewer rows than that become one."""
    counts = level_counts(levels)
    return levels.where(counts >= at_least, "rare")


def level_counts(levels: pd.DataFrame) -> pd.DataFrame:
    return levels.apply(lambda column: column.map(column.value_counts()).astype(float))


def level_frequencies(levels: pd.DataFrame) -> pd.DataFrame:
    """The share of all rows that have the same level."""
    return (level_counts(levels) / len(levels)).add_suffix(" frequency")


def clip_outliers(numbers: pd.DataFrame, train_rows: int) -> pd.DataFrame:
    """Every column clipped to the 0.5 and 99.5 percentiles of its training rows."""
    low, high = (numbers[:train_rows].quantile(share) for share in (0.005, 0.995))
    return numbers.clip(low, high, axis=1)


def date_numbers(rows: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Dates as days since 1970."""
    return rows[names].apply(lambda column: days(parsed(column))).add_suffix(" in days")


def parsed(column: pd.Series) -> pd.Series:
    return pd.to_datetime(column, errors="coerce", format="mixed").astype("datetime64[ns]")


def days(dates: pd.Series) -> pd.Series:
    return (dates - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)


def date_parts(rows: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Parts of each date that vary, and sine and cosine of those that go round."""
    parts = {}
    for name in names:
        date = parsed(rows[name])
        parts[f"{name} year"] = date.dt.year.astype(float)
        for part, period in (("month", 12), ("day", 31), ("day_of_week", 7), ("hour", 24)):
            value = getattr(date.dt, part).astype(float)
            parts[f"{name} {part}"] = value
            parts[f"{name} {part} sine"] = np.sin(2 * np.pi * value / period)
            parts[f"{name} {part} cosine"] = np.cos(2 * np.pi * value / period)
        parts[f"{name} minute of day"] = date.dt.hour * 60.0 + date.dt.minute
        parts[f"{name} day of year"] = date.dt.day_of_year.astype(float)
    frame = pd.DataFrame(parts, index=rows.index)
    return frame.loc[:, frame.nunique() > 1]


def strongest_columns(numbers: pd.DataFrame, y: np.ndarray, count: int, seed: int) -> list[str]:
    """The columns that a forest on a sample of the training rows finds most important."""
    if numbers.shape[1] <= 1:
        return list(numbers)
    chosen = np.random.default_rng(seed).permutation(len(y))[:3000]
    sample = numbers.iloc[chosen]
    forest = ExtraTreesClassifier if y.dtype.kind in "iu" else ExtraTreesRegressor
    model = forest(n_estimators=60, min_samples_leaf=5, random_state=seed)
    model.fit(sample.fillna(sample.median()).fillna(0), y[chosen])
    order = np.argsort(-model.feature_importances_, kind="stable")
    return [numbers.columns[position] for position in order[:count]]


def products(numbers: pd.DataFrame) -> pd.DataFrame:
    """Products of all pairs of columns, and squares."""
    pairs = [(name, name) for name in numbers] + list(combinations(numbers, 2))
    return pd.DataFrame({f"{a} × {b}": numbers[a] * numbers[b] for a, b in pairs})


def ratios(numbers: pd.DataFrame) -> pd.DataFrame:
    """Ratios and differences of all pairs of columns; a ratio to 0 is missing."""
    found = {}
    for a, b in combinations(numbers, 2):
        found[f"{a} / {b}"] = numbers[a] / numbers[b].where(numbers[b] != 0)
        found[f"{a} - {b}"] = numbers[a] - numbers[b]
    return pd.DataFrame(found, index=numbers.index)


def group_aggregates(numbers: pd.DataFrame, levels: pd.DataFrame) -> pd.DataFrame:
    """Mean and spread of each number within each level, and how far the row is from that mean."""
    found = {}
    for level in levels:
        groups = numbers.groupby(levels[level])
        mean, spread = groups.transform("mean"), groups.transform("std")
        for name in numbers:
            found[f"{name} mean by {level}"] = mean[name]
            found[f"{name} spread by {level}"] = spread[name]
            found[f"{name} deviation by {level}"] = numbers[name] - mean[name]
    return pd.DataFrame(found, index=numbers.index)


def text_statistics(texts: pd.DataFrame) -> pd.DataFrame:
    """Lengths, counts and shares of letter kinds of each text."""
    found = {}
    for name in texts:
        text = texts[name]
        length = text.str.len().astype(float)
        found[f"{name} length"] = length
        found[f"{name} words"] = text.str.split().str.len().astype(float)
        kinds = {"vowels": r"[aeiouyAEIOUY]", "capitals": r"[A-Z]", "digits": r"\d",
                 "marks": r"[^\w\s]", "other letters": r"[^\x00-\x7f]"}  # fmt: skip
        for kind, pattern in kinds.items():
            found[f"{name} share of {kind}"] = text.str.count(pattern) / length.clip(lower=1)
        words = text.str.split().map(lambda parts: np.mean([len(p) for p in parts] or [0]))
        found[f"{name} word length"] = words.astype(float)
    return pd.DataFrame(found, index=texts.index)


def text_columns(rows: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    return rows[names].fillna("").astype(str)


def join_tables(rows: pd.DataFrame, files: list[str], training: int) -> pd.DataFrame:
    """Each side table joined by the keys that tell its rows apart and match most rows.

    A table that no key tells apart is averaged over the keys. New columns are named after their
    table; a table with which nothing is shared is left out, and so is what is told of the first
    rows, those of training, but hardly of the others: models would come to rely on it.
    """
    for file in files:
        side = pd.read_csv(f"input/{file}", low_memory=False).drop_duplicates()
        keys = join_keys(rows, side) or like_valued_keys(rows, side)
        if not keys:
            continue
        theirs = list(keys.values())
        if side.duplicated(theirs).any():
            side = with_counts(side, theirs)
        new = side[[name for name in side if name not in theirs]]
        new = new.add_prefix(f"{Path(file).stem} ")
        table = pd.concat([key_text(side[theirs]), new], axis=1)
        joined = key_text(with_hour(rows)[list(keys)]).merge(
            table, left_on=list(keys), right_on=theirs, how="left"
        )
        known = joined[list(new)].notna()
        kept = known[training:].mean() >= known[:training].mean() / 2
        told = joined[list(kept.index[kept])]
        rows = pd.concat([rows, told.set_axis(rows.index)], axis=1)
    return rows


def with_counts(side: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Mean, sum and latest of each number by key, and how many rows the key has."""
    side = side.assign(**{name: days(parsed(side[name])) for name in side
                          if name not in keys and looks_like_dates(side[name])})  # fmt: skip
    groups = side.groupby(keys)
    numbers = [name for name in side.select_dtypes("number") if name not in keys]
    parts = [groups[numbers].agg(how).add_suffix(f" {how}") for how in ("mean", "sum", "max")]
    return pd.concat([*parts, groups.size().rename("count")], axis=1).reset_index()


def looks_like_dates(column: pd.Series) -> bool:
    if pd.api.types.is_numeric_dtype(column):
        return False
    return bool(column.dropna().astype(str).head(100).str.match(r"\d{4}-\d{2}-\d{2}").all())


def with_hour(rows: pd.DataFrame) -> pd.DataFrame:
    """With a column `hour`, if there is none, from the first time of day written like 1435."""
    if "hour" not in rows:
        for name in rows.select_dtypes("number"):
            value = rows[name].dropna()
            if "time" in name and value.between(0, 2400).all() and (value % 100 < 60).all():
                return rows.assign(hour=rows[name] // 100)
    return rows


def like_valued_keys(rows: pd.DataFrame, side: pd.DataFrame) -> dict[str, str]:
    """A text column of the rows and a unique column of the side table that holds its values."""
    found, most = {}, 1
    for theirs in side.select_dtypes(exclude="number"):
        for ours in rows.select_dtypes(exclude="number"):
            levels, matched = rows[ours].nunique(), rows[ours].isin(side[theirs]).mean()
            if side[theirs].is_unique and matched > 0.5 and levels > most:
                found, most = {ours: theirs}, levels
    return found


def joined_categories(rows: pd.DataFrame, known: list[str]) -> list[str]:
    """Joined columns that are no numbers."""
    numeric = set(rows.select_dtypes("number"))
    return [name for name in rows if name not in known and name not in numeric]


def join_keys(rows: pd.DataFrame, side: pd.DataFrame) -> dict[str, str]:
    """The fewest columns of the same name that are unique in the side table and match most."""
    rows = with_hour(rows)
    shared = [name for name in side if name in rows][:6]
    matches = {}
    for size in range(1, len(shared) + 1):
        for keys in combinations(shared, size):
            known = pd.MultiIndex.from_frame(key_text(side[list(keys)]))
            wanted = pd.MultiIndex.from_frame(key_text(rows[list(keys)]))
            matches[keys] = float(wanted.isin(known).mean())
        unique = [k for k in matches if not side.duplicated(list(k)).any() and matches[k] > 0.3]
        if unique:
            return {name: name for name in max(unique, key=matches.__getitem__)}
    usable = [keys for keys in matches if matches[keys] > 0.3]
    best = max(usable, key=lambda keys: (len(keys), matches[keys]), default=())
    return {name: name for name in best}


def key_text(keys: pd.DataFrame) -> pd.DataFrame:
    """Keys as text, so that 1 and 1.0 are one key."""
    numeric = keys.dtypes.map(pd.api.types.is_numeric_dtype)
    return keys.astype(dict.fromkeys(keys.columns[numeric], float)).astype(str)
