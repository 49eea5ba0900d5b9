"""Reading a task's files and writing a submission."""

# Column names are strings in CSV files, and scikit-learn has no types.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import numpy as np
import pandas as pd

# What every script sets for itself.
ID = "id"
TARGETS = ["target"]
CLASSES = ["0", "1"]
PREDICTED = ["target"]


def read_tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    train = pd.read_csv("input/train.csv", low_memory=False)
    return train, pd.read_csv("input/test.csv", low_memory=False)


def read_values() -> np.ndarray:
    """The targets as numbers: (rows,) for one target, (rows, targets) for several."""
    values = pd.read_csv("input/train.csv", usecols=TARGETS, low_memory=False)[TARGETS]
    y = values.apply(pd.to_numeric, errors="coerce").to_numpy(float)
    return y[:, 0] if len(TARGETS) == 1 else y


def read_classes() -> np.ndarray:
    """The position of each row's class in `CLASSES`; missing where it is none of them."""
    names = pd.read_csv("input/train.csv", usecols=TARGETS, dtype=str, keep_default_na=False)
    return names[TARGETS[0]].map({name: code for code, name in enumerate(CLASSES)}).to_numpy(float)


def with_targets(train: pd.DataFrame, y: np.ndarray) -> tuple[pd.DataFrame, np.ndarray]:
    """Only the rows whose targets are known."""
    known = np.isfinite(y.reshape(len(y), -1)).all(axis=1)
    return train[known].reset_index(drop=True), y[known]


def together(train: pd.DataFrame, test: pd.DataFrame) -> pd.DataFrame:
    """Train and test rows under each other, with the columns that both have."""
    shared = [name for name in train if name in test and name not in (ID, *TARGETS)]
    return pd.concat([train[shared], test[shared]], ignore_index=True)


def one_frame(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """All features side by side; numbers too large to use are missing; never without a column."""
    X = pd.concat(parts, axis=1)
    X = X.loc[:, ~X.columns.duplicated()] if X.shape[1] else X.assign(nothing=0.0)
    numbers = X.select_dtypes("number").astype(float)
    return X.assign(**{str(name): numbers[name].where(numbers[name].abs() < 1e15)
                       for name in numbers})  # fmt: skip


def sampled(
    X: pd.DataFrame, y: np.ndarray, rows: int, seed: int
) -> tuple[pd.DataFrame, np.ndarray]:
    """At most that many rows, drawn at random."""
    chosen = np.sort(np.random.default_rng(seed).permutation(len(X))[:rows])
    return X.iloc[chosen], y[chosen]


def write_submission(values: np.ndarray) -> None:
    """One line a test row, with the columns of the sample submission."""
    columns = list(pd.read_csv("input/sample_submission.csv", nrows=0))
    ids = pd.read_csv("input/test.csv", usecols=[ID], dtype=str, keep_default_na=False)[ID]
    table = pd.DataFrame(values.reshape(len(ids), -1), columns=PREDICTED)
    table.insert(0, ID, ids.to_numpy())
    table[columns].to_csv("submission.csv", index=False)
