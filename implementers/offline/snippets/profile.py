"""The first look at a task's data: a summary for people and a profile for the policy."""

# Column names are strings in CSV files, and scikit-learn has no types.
# mypy: disable-error-code="arg-type, assignment, attr-defined, misc"

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

DATE = re.compile(r"\d{4}[-/]\d{1,2}([-/]\d{1,2})?([ T]\d{1,2}:\d{2}.*)?|\d{1,2}/\d{1,2}/\d{2,4}")
KEY = re.compile(
    r"(^|[ _.-])(id|code|zip|key|person|user|customer|client|member|patient|subject|household"
    r"|store|shop|item|product|sku|seller|player|school|flight)$|[a-z]I[dD]$",
    re.IGNORECASE,
)
LISTED = 12_000


def profile_data(folder: str, id_column: str, targets: list[str]) -> dict[str, Any]:
    """Everything that can be said of the data without a model."""
    train = pd.read_csv(f"{folder}/train.csv", low_memory=False)
    test = pd.read_csv(f"{folder}/test.csv", low_memory=False)
    unknown = [name for name in train if name not in test and name != id_column]
    targets = targets if set(targets) <= set(unknown) else unknown
    features = [name for name in train if name in test and name not in (id_column, *targets)]
    image = image_shape(train[features])
    pixels = set(pixel_columns(train[features])) if image else set()
    columns = [describe(train[name]) for name in features if name not in pixels]
    listed, unlisted = shorten(columns)
    kinds = {column["name"]: column["kind"] for column in columns}
    time, gaps, horizon = time_column(train, test, [c for c in kinds if kinds[c] == "date"])
    categories = [name for name, kind in kinds.items() if kind == "category"]
    return {
        "rows": len(train),
        "test_rows": len(test),
        "columns": listed,
        "targets": [describe(train[name]) for name in targets],
        "image": image,
        "time": time,
        "gaps": gaps,
        "group": time if gaps else group_column(train, test, categories),
        "series": series_columns(train, time, [c for c in kinds if kinds[c] != "date"]),
        "side_tables": side_tables(folder),
        "unlisted": unlisted,
        "horizon": horizon,
    }


def describe(column: pd.Series) -> dict[str, Any]:
    """One column's kind, number of levels, and what is special about it."""
    found: dict[str, Any] = {
        "name": str(column.name),
        "kind": kind_of(column),
        "levels": int(column.nunique()),
    }
    missing = float(column.isna().mean())
    if missing > 0:
        found["missing"] = round(missing, 4)
    if found["kind"] == "number" and pd.api.types.is_numeric_dtype(column):
        values = column.astype(float).replace([np.inf, -np.inf], np.nan).dropna()
        found["low"], found["high"] = (float(f"{v:.6g}") for v in (values.min(), values.max()))
        skew = float(values.skew()) if len(values) > 2 else np.nan
        found["skew"] = round(skew, 2) if np.isfinite(skew) else None
    return found


def kind_of(column: pd.Series) -> str:
    """`number`, `category`, `text`, `date` or `constant`."""
    values = column.dropna()
    levels = values.nunique()
    if levels <= 1:
        return "constant"
    if pd.api.types.is_bool_dtype(values):
        return "category"
    if pd.api.types.is_numeric_dtype(values):
        whole = bool((values % 1 == 0).all())
        is_key = whole and KEY.search(str(column.name)) and levels < 0.9 * len(values)
        return "category" if is_key else "number"
    text = values.astype(str)
    if text.head(500).str.fullmatch(DATE).mean() > 0.95:
        return "date"
    if set(text.unique()) <= {"True", "False"}:
        return "category"
    words = text.head(2000).str.split().str.len().mean()
    distinct = levels / len(values)
    many = levels > 50 and distinct > 0.5
    return "text" if many or (words >= 4 and levels > 50 and distinct > 0.05) else "category"


def pixel_columns(frame: pd.DataFrame) -> list[str]:
    """The columns of the largest family of like-named numeric columns (`p0`, `p1`, …)."""
    families: dict[str, list[str]] = {}
    for name in frame.select_dtypes("number"):
        found = re.fullmatch(r"(.*?)(\d+)", str(name))
        if found:
            families.setdefault(found[1], []).append(name)
    return max(families.values(), key=len, default=[])


def image_shape(frame: pd.DataFrame) -> list[int] | None:
    """Height and width, if the numbered columns look like the pixels of a square image."""
    pixels = pixel_columns(frame)
    side = round(len(pixels) ** 0.5)
    if side < 7 or side * side != len(pixels):
        return None
    values = frame[pixels].to_numpy(float)
    looks_like_pixels = np.isfinite(values).all() and values.min() >= 0 and values.max() <= 255
    return [side, side] if looks_like_pixels else None


def shorten(columns: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """What `LISTED` characters hold, numbers last; and how many columns are left out."""
    kept, used = set(), 0
    for column in sorted(columns, key=lambda column: column["kind"] == "number"):
        used += len(json.dumps(column))
        if used <= LISTED:
            kept.add(column["name"])
    return [column for column in columns if column["name"] in kept], len(columns) - len(kept)


def time_column(
    train: pd.DataFrame, test: pd.DataFrame, dates: list[str]
) -> tuple[str | None, bool, int | None]:
    """The date column of which test shows no date of train; does test lie in gaps; its length."""
    for name in dates:
        then = pd.to_datetime(train[name], errors="coerce", format="mixed").dropna()
        later = pd.to_datetime(test[name], errors="coerce", format="mixed").dropna()
        if then.empty or later.empty:
            continue
        if later.min() > then.max():
            return name, False, int(later.nunique())
        repeated = then.nunique() < 0.5 * len(then)
        if repeated and not later.isin(then.unique()).any():
            return name, True, int(later.nunique())
    return None, False, None


def group_column(train: pd.DataFrame, test: pd.DataFrame, names: list[str]) -> str | None:
    """A category with repeated levels, none of which occurs in test."""
    for name in names:
        if train[name].nunique() < 0.5 * len(train):
            levels = set(train[name].dropna().astype(str))
            if len(levels) >= 5 and not levels & set(test[name].dropna().astype(str)):
                return name
    return None


def series_columns(train: pd.DataFrame, time: str | None, names: list[str]) -> list[str]:
    """The fewest columns that, with the time, tell the rows apart; none if the time does alone."""
    if time is None or not train.duplicated([time]).any():
        return []
    names = [name for name in names if 1 < train[name].nunique() < 0.2 * len(train)][:12]
    for size in (1, 2, 3):
        for chosen in combinations(names, size):
            if not train.duplicated([time, *chosen]).any():
                return list(chosen)
    return []


def side_tables(folder: str) -> list[str]:
    usual = {"train.csv", "test.csv", "sample_submission.csv"}
    return sorted(path.name for path in Path(folder).glob("*.csv") if path.name not in usual)


def summary(profile: dict[str, Any]) -> str:
    """The profile for people: one line a fact."""
    lines = [f"{profile['rows']} training rows, {profile['test_rows']} test rows"]
    for part in ("targets", "columns"):
        for column in profile[part][:40]:
            facts = ", ".join(f"{k} {v}" for k, v in column.items() if k not in ("name", "kind"))
            lines.append(f"{part[:-1]} {column['name'][:60]!r}: {column['kind']} ({facts})")
    hidden = len(profile["columns"][40:]) + profile["unlisted"]
    lines += [f"… and {hidden} more columns"] if hidden else []
    facts = {
        "image": "pixels of an image of {}",
        "time": "no date of the test rows occurs in the training rows: {!r}",
        "group": "the levels of {!r} in test do not occur in train",
        "series": "series are told apart by {}",
        "side_tables": "other tables: {}",
    }
    lines += [text.format(profile[key]) for key, text in facts.items() if profile[key]]
    return "\n".join(lines)


def show_profile(folder: str, id_column: str, targets: list[str]) -> None:
    """Print the summary, and the profile as one line of JSON."""
    profile = profile_data(folder, id_column, targets)
    print(summary(profile))
    print("profile: " + json.dumps(profile, allow_nan=False))
