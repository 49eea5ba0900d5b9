# recipe: {"operations":["model_boosting","date_parts","target_encoding","impute_missing","blend","calibrate"]}
# ruff: noqa: E501
"""A solution of the task toy: gradient boosting and a regularised linear model and a random forest.

- Use histogram gradient boosting with early stopping.
- Split dates into year, month, day, weekday, hour and their cyclic forms.
- Add out-of-fold target encodings of the categorical columns.
- Fill missing numbers with the median and add an indicator column for each.
- Blend models of different families, weighted on out-of-fold predictions.
- Calibrate the predicted probabilities on out-of-fold predictions.
"""

import os
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy.special import softmax
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from threadpoolctl import threadpool_limits

ID = "id"
TARGETS = ["y"]
PREDICTED = ["a", "b c", "NA"]
CLASSES = ["a", "b c", "NA"]
CATEGORIES = ["city", "shop", "open"]
TEXTS = []
DATES = ["sold"]
CONSTANT = ["empty", "same"]
OUTPUTS = 3
SEED = 0
JOBS = int(os.environ.get("OMP_NUM_THREADS", "1"))


def calibrate(
    y: np.ndarray, checked: np.ndarray, test: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities mapped to observed frequencies, one increasing function a column."""
    truth = y if y.ndim == 2 else (y[:, None] == np.arange(checked.shape[1])).astype(int)
    found, found_test = np.zeros_like(checked), np.zeros_like(test)
    for column in range(checked.shape[1]):
        model = IsotonicRegression(y_min=1e-3, y_max=1 - 1e-3, out_of_bounds="clip")
        p, t = checked[:, column], truth[:, column]
        for train, valid in KFold(5, shuffle=True, random_state=seed).split(p):
            found[valid, column] = model.fit(p[train], t[train]).predict(p[valid])
        found_test[:, column] = model.fit(p, t).predict(test[:, column])
    if y.ndim == 2:
        return found, found_test
    return tuple(p / p.sum(axis=1, keepdims=True) for p in (found, found_test))


class LevelTargets(TransformerMixin, BaseEstimator):
    """Mean targets of each level, drawn to the overall mean where a level has few rows.

    The rows it is fitted to get the means of the other folds' rows, so that none sees its own
    target. Classes give one column each (two classes give one in all).
    """

    def __init__(self, seed: int, weight: float = 10.0) -> None:
        self.seed = seed
        self.weight = weight

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Self:
        known = np.unique(y)
        is_codes = y.ndim == 1 and y.dtype.kind in "iu"
        self.classes_ = (known[1:] if len(known) == 2 else known) if is_codes else None
        values = self._values(y)
        self.mean_ = values.mean(axis=0)
        self.tables_ = [self._table(X[name], values) for name in X]
        return self

    def fit_transform(self, X: pd.DataFrame, y: np.ndarray) -> np.ndarray:
        self.fit(X, y)
        values = self._values(y)
        found = np.tile(self.mean_, (len(X), X.shape[1]))
        for train, valid in KFold(5, shuffle=True, random_state=self.seed).split(X):
            tables = [self._table(X[name].iloc[train], values[train]) for name in X]
            found[valid] = self._encoded(X.iloc[valid], tables)
        return found

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        return self._encoded(X, self.tables_)

    def _values(self, y: np.ndarray) -> np.ndarray:
        if self.classes_ is None:
            return y.reshape(len(y), -1)
        return (y[:, None] == self.classes_).astype(float)

    def _table(self, column: pd.Series, values: np.ndarray) -> pd.DataFrame:
        groups = pd.DataFrame(values).groupby(column.astype(str).to_numpy())
        counts = groups.size().to_numpy()[:, None]
        return (groups.sum() + self.weight * self.mean_) / (counts + self.weight)

    def _encoded(self, X: pd.DataFrame, tables: list[pd.DataFrame]) -> np.ndarray:
        parts = [table.reindex(X[name].astype(str)) for name, table in zip(X, tables, strict=True)]
        return np.hstack([part.fillna(dict(enumerate(self.mean_))).to_numpy() for part in parts])


def blend(
    checked: list[np.ndarray], test: list[np.ndarray], loss: Callable[[np.ndarray], float]
) -> tuple[np.ndarray, np.ndarray]:
    """The weighted average with the least loss, found by adding one model at a time."""
    chosen: list[int] = []
    for _ in range(12):
        losses = [loss(np.mean([checked[i] for i in [*chosen, new]], axis=0))
                  for new in range(len(checked))]  # fmt: skip
        chosen.append(int(np.argmin(losses)))
    print("weights of the blend:", np.bincount(chosen, minlength=len(checked)) / len(chosen))
    return (np.mean([checked[i] for i in chosen], axis=0),
            np.mean([test[i] for i in chosen], axis=0))


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


def read_tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    train = pd.read_csv("input/train.csv", low_memory=False)
    return train, pd.read_csv("input/test.csv", low_memory=False)


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
                       for name in numbers})


def write_submission(values: np.ndarray) -> None:
    """One line a test row, with the columns of the sample submission."""
    columns = list(pd.read_csv("input/sample_submission.csv", nrows=0))
    ids = pd.read_csv("input/test.csv", usecols=[ID], dtype=str, keep_default_na=False)[ID]
    table = pd.DataFrame(values.reshape(len(ids), -1), columns=PREDICTED)
    table.insert(0, ID, ids.to_numpy())
    table[columns].to_csv("submission.csv", index=False)


def log_loss(y: np.ndarray, p: np.ndarray) -> float:
    """Mean of −log(probability of what is true); for many labels their mean."""
    p = np.clip(p, 1e-15, 1 - 1e-15)
    if p.ndim == 2 and y.ndim == 1:
        p = p / p.sum(axis=1, keepdims=True)
        return float(-np.log(p[np.arange(len(y)), y]).mean())
    return float(-np.where(y == 1, np.log(p), np.log1p(-p)).mean())


def plain_folds(rows: int, count: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training and validation positions of each fold, rows at random."""
    return list(KFold(count, shuffle=True, random_state=seed).split(np.zeros(rows)))


def stratified_folds(y: np.ndarray, count: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Folds in which the classes are as frequent as in all rows."""
    rarest = np.bincount(y)[np.bincount(y) > 0].min()
    if rarest < count:
        return plain_folds(len(y), count, seed)
    return list(StratifiedKFold(count, shuffle=True, random_state=seed).split(y, y))


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


def predict_classes(model: Any, X: pd.DataFrame) -> np.ndarray:
    """(rows, OUTPUTS) probabilities of the classes; 0 for a class that the model never saw.

    Decision scores of models without probabilities are squeezed into (0, 1).
    """
    if hasattr(model, "predict_proba"):
        found = model.predict_proba(X)
    else:
        scores = model.decision_function(X)
        both = np.column_stack([-scores, scores]) / 2 if scores.ndim == 1 else scores
        found = softmax(both, axis=1)
    probabilities = np.zeros((len(X), OUTPUTS))
    probabilities[:, model.classes_] = found
    return probabilities


def build_features(
    train: pd.DataFrame, test: pd.DataFrame, y: np.ndarray
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The columns that the models see, for train and test."""
    rows = together(train, test)
    numbers = numeric_columns(rows, CATEGORIES + TEXTS + DATES + CONSTANT)
    levels = level_columns(rows, CATEGORIES)
    X = one_frame([
        numbers,
        levels.astype("category"),
        date_numbers(rows, DATES),
        date_parts(rows, DATES),
    ])
    return X[: len(train)], X[len(train) :].reset_index(drop=True)


def fit_boosting(X: pd.DataFrame, y: np.ndarray, seed: int, **parameters: Any) -> Pipeline:
    """The columns as the model needs them, and the model, both fitted to these rows."""
    numbers = SimpleImputer(strategy="median", keep_empty_features=True, add_indicator=True)
    levels = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    level_targets = LevelTargets(seed)
    columns = ColumnTransformer([
        ("numbers", numbers, make_column_selector(dtype_include="number")),
        ("levels", levels, make_column_selector(dtype_include="category")),
        ("level_targets", level_targets, make_column_selector(dtype_include="category")),
    ])
    model = HistGradientBoostingClassifier(
        learning_rate=0.08,
        max_iter=250,
        max_leaf_nodes=31,
        min_samples_leaf=8,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=seed,
    )
    pipeline = Pipeline([("columns", columns), ("model", model)])
    return pipeline.set_params(**parameters).fit(X, y)


def fit_linear(X: pd.DataFrame, y: np.ndarray, seed: int, **parameters: Any) -> Pipeline:
    """The columns as the model needs them, and the model, both fitted to these rows."""
    numbers = make_pipeline(
        SimpleImputer(strategy="median", keep_empty_features=True, add_indicator=True),
        StandardScaler(),
    )
    levels = OneHotEncoder(
        handle_unknown="infrequent_if_exist",
        min_frequency=3,
        max_categories=200,
    )
    level_targets = LevelTargets(seed)
    columns = ColumnTransformer([
        ("numbers", numbers, make_column_selector(dtype_include="number")),
        ("levels", levels, make_column_selector(dtype_include="category")),
        ("level_targets", level_targets, make_column_selector(dtype_include="category")),
    ])
    model = LogisticRegression(C=1.0, max_iter=300)
    pipeline = Pipeline([("columns", columns), ("model", model)])
    return pipeline.set_params(**parameters).fit(X, y)


def fit_forest(X: pd.DataFrame, y: np.ndarray, seed: int, **parameters: Any) -> Pipeline:
    """The columns as the model needs them, and the model, both fitted to these rows."""
    numbers = SimpleImputer(strategy="median", keep_empty_features=True, add_indicator=True)
    levels = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    level_targets = LevelTargets(seed)
    columns = ColumnTransformer([
        ("numbers", numbers, make_column_selector(dtype_include="number")),
        ("levels", levels, make_column_selector(dtype_include="category")),
        ("level_targets", level_targets, make_column_selector(dtype_include="category")),
    ])
    model = RandomForestClassifier(
        n_estimators=200,
        min_samples_leaf=2,
        max_features="sqrt",
        n_jobs=JOBS,
        random_state=seed,
    )
    pipeline = Pipeline([("columns", columns), ("model", model)])
    return pipeline.set_params(**parameters).fit(X, y)


def decide(p: np.ndarray) -> np.ndarray:
    """The probabilities that a model's predictions stand for."""
    return p


def loss(y: np.ndarray, p: np.ndarray) -> float:
    """The metric of predictions, turned so that less is better."""
    return log_loss(y, decide(p))


def main() -> None:
    threadpool_limits(1)  # for the same numbers on every machine
    warnings.filterwarnings("ignore", category=ConvergenceWarning)
    train, test = read_tables()
    train, y = with_targets(train, read_classes())
    y = y.astype(int)
    X, X_test = build_features(train, test, y)
    folds = stratified_folds(y, 5, SEED)
    fits = [fit_boosting, fit_linear, fit_forest]
    results = [cross_validate(fit, predict_classes, X, y, X_test, folds, [SEED], refit=False) for fit in fits]
    rows = np.isfinite(results[0][0]).all(axis=1)
    y, each_checked = y[rows], [checked[rows] for checked, _ in results]
    each_predicted = [predicted for _, predicted in results]
    checked, predicted = blend(each_checked, each_predicted, partial(loss, y))
    checked, predicted = calibrate(y, checked, predicted, SEED)
    answers, submitted = decide(checked), decide(predicted)
    print(f"Validation score: {log_loss(y, answers):.6f}")
    write_submission(submitted)


if __name__ == "__main__":
    main()
