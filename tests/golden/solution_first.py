# recipe: {"operations":["model_linear"]}
"""A solution of the task toy: a regularised linear model.

- Use a regularised linear model on standardised columns.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.metrics import root_mean_squared_error
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

ID = "id"
TARGETS = ["y"]
PREDICTED = ["y"]
CATEGORIES = ["city", "shop", "open"]
TEXTS = []
DATES = ["sold"]
CONSTANT = ["empty", "same"]
OUTPUTS = 1
SEED = 0


def numeric_columns(rows: pd.DataFrame, without: list[str]) -> pd.DataFrame:
    """All columns but those as numbers; what is no number, or too large to use, is missing."""
    columns = rows.drop(columns=[name for name in without if name in rows])
    numbers = columns.apply(pd.to_numeric, errors="coerce").astype(float)
    return numbers.where(numbers.abs() < 1e15).dropna(axis=1, how="all")


def level_columns(rows: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Categorical columns as text; a missing value is a level of its own."""
    return rows[names].astype(object).where(rows[names].notna(), "missing").astype(str)


def date_numbers(rows: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Dates as days since 1970."""
    return rows[names].apply(lambda column: days(parsed(column))).add_suffix(" in days")


def parsed(column: pd.Series) -> pd.Series:
    return pd.to_datetime(column, errors="coerce", format="mixed").astype("datetime64[ns]")


def days(dates: pd.Series) -> pd.Series:
    return (dates - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)


def read_tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    train = pd.read_csv("input/train.csv", low_memory=False)
    return train, pd.read_csv("input/test.csv", low_memory=False)


def read_values() -> np.ndarray:
    """The targets as numbers: (rows,) for one target, (rows, targets) for several."""
    values = pd.read_csv("input/train.csv", usecols=TARGETS, low_memory=False)[TARGETS]
    y = values.apply(pd.to_numeric, errors="coerce").to_numpy(float)
    return y[:, 0] if len(TARGETS) == 1 else y


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
                       for name in numbers})


def write_submission(values: np.ndarray) -> None:
    """One line a test row, with the columns of the sample submission."""
    columns = list(pd.read_csv("input/sample_submission.csv", nrows=0))
    ids = pd.read_csv("input/test.csv", usecols=[ID], dtype=str, keep_default_na=False)[ID]
    table = pd.DataFrame(values.reshape(len(ids), -1), columns=PREDICTED)
    table.insert(0, ID, ids.to_numpy())
    table[columns].to_csv("submission.csv", index=False)


def rmse(y: np.ndarray, p: np.ndarray) -> float:
    return root_mean_squared_error(y, p)


def plain_folds(rows: int, count: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training and validation positions of each fold, rows at random."""
    return list(KFold(count, shuffle=True, random_state=seed).split(np.zeros(rows)))


def cross_validate(
    fit: Callable[..., Any],
    predict: Callable[[Any, pd.DataFrame], np.ndarray],
    X: pd.DataFrame,
    y: np.ndarray,
    X_test: pd.DataFrame,
    folds: list[tuple[np.ndarray, np.ndarray]],
    seeds: list[int],
    refit: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Predictions of the validation rows (of other rows: missing) and of the test rows.

    `fit(X, y, seed)` returns a fitted model; the seeds' predictions are averaged. Test rows get
    the mean over the folds or, with `refit`, the predictions of models fitted to all rows.
    """
    checked, test = np.full((len(X), OUTPUTS), np.nan), np.zeros((len(X_test), OUTPUTS))
    for number, (train, valid) in enumerate(folds):
        models = [fit(X.iloc[train], y[train], seed + number) for seed in seeds]
        checked[valid] = np.mean([predict(m, X.iloc[valid]) for m in models], axis=0)
        if not refit:
            test += np.mean([predict(m, X_test) for m in models], axis=0) / len(folds)
    if refit:
        test = np.mean([predict(fit(X, y, seed), X_test) for seed in seeds], axis=0)
    return checked, test


def predict_values(model: Any, X: pd.DataFrame) -> np.ndarray:
    """(rows, OUTPUTS) values."""
    return np.asarray(model.predict(X)).reshape(len(X), OUTPUTS)


def build_features(
    train: pd.DataFrame, test: pd.DataFrame, y: np.ndarray
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The columns that the models see, for train and test."""
    rows = together(train, test)
    numbers = numeric_columns(rows, CATEGORIES + TEXTS + DATES + CONSTANT)
    levels = level_columns(rows, CATEGORIES)
    X = one_frame([numbers, levels.astype("category"), date_numbers(rows, DATES)])
    return X[: len(train)], X[len(train) :].reset_index(drop=True)


def fit_linear(X: pd.DataFrame, y: np.ndarray, seed: int, **parameters: Any) -> Pipeline:
    """The columns as the model needs them, and the model, both fitted to these rows."""
    numbers = make_pipeline(
        SimpleImputer(strategy="median", keep_empty_features=True),
        StandardScaler(),
    )
    levels = OneHotEncoder(
        handle_unknown="infrequent_if_exist",
        min_frequency=3,
        max_categories=200,
    )
    columns = ColumnTransformer([
        ("numbers", numbers, make_column_selector(dtype_include="number")),
        ("levels", levels, make_column_selector(dtype_include="category")),
    ])
    model = Ridge(alpha=1.0)
    pipeline = Pipeline([("columns", columns), ("model", model)])
    return pipeline.set_params(**parameters).fit(X, y)


def decide(p: np.ndarray) -> np.ndarray:
    """The values that a model's predictions stand for."""
    return p[:, 0]


def main() -> None:
    threadpool_limits(1)  # for the same numbers on every machine
    warnings.filterwarnings("ignore", category=ConvergenceWarning)
    train, test = read_tables()
    train, y = with_targets(train, read_values())
    X, X_test = build_features(train, test, y)
    folds = plain_folds(len(y), 5, SEED)
    checked, predicted = cross_validate(
        fit_linear,
        predict_values,
        X,
        y,
        X_test,
        folds,
        [SEED],
        refit=False,
    )
    rows = np.isfinite(checked).all(axis=1)
    y, checked = y[rows], checked[rows]
    answers, submitted = decide(checked), decide(predicted)
    print(f"Validation score: {rmse(y, answers):.6f}")
    write_submission(submitted)


if __name__ == "__main__":
    main()
