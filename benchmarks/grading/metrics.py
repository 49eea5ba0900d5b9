"""METRICS: every metric's name, direction, and what it demands of truth and predictions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from mle_ideator.benchmarks.grading import formulas, ranking, survival
from mle_ideator.benchmarks.grading.formulas import Array, Undefined
from mle_ideator.errors import UsageError, unknown
from mle_ideator.types import Metric

Prediction = Literal["value", "label", "probability"]
Targets = Literal["one", "many", "any"]
Needs = Literal["numbers", "classes", "two classes", "ordinal"]
Beside = Literal["event", "group"]


@dataclass(frozen=True)
class Interval:
    """The numbers from `low` to `high`, both included unless `above_low`."""

    low: float = -math.inf
    high: float = math.inf
    above_low: bool = False

    def outside(self, values: Array) -> Array:
        """True where a value lies outside. NaN lies nowhere and is not reported."""
        below = values <= self.low if self.above_low else values < self.low
        return np.asarray(below | (values > self.high))

    def __str__(self) -> str:
        if self == UNIT:
            return "in [0, 1]"
        if math.isinf(self.low):
            return "any number"
        return f"> {self.low:g}" if self.above_low else f"≥ {self.low:g}"


ANY = Interval()
NOT_NEGATIVE = Interval(0.0)
POSITIVE = Interval(0.0, above_low=True)
UNIT = Interval(0.0, 1.0)


@dataclass(frozen=True)
class MetricSpec:
    """One metric. `compute(truth, predicted)` takes arrays as `formulas` says.

    With `beside` it takes a third: 1 and 0, or the numbers of the groups, (n,).
    """

    name: str
    higher_is_better: bool
    prediction: Prediction
    needs: Needs
    """What the truth must be."""
    compute: Callable[..., float]
    doc: str
    targets: Targets = "one"
    """How many target columns it takes."""
    bounds: Interval = ANY
    """Where predictions must lie."""
    truth: Interval = ANY
    """Where true values must lie."""
    beside: Beside | None = None
    """What it must know of each row besides the truth: was the end seen, or what is ranked with
    what. A submission does not have it."""

    @property
    def metric(self) -> Metric:
        return Metric(self.name, self.higher_is_better)


def _value(
    name: str, doc: str, *, higher: bool = False, targets: Targets = "one",
    bounds: Interval = ANY, truth: Interval = ANY,
) -> MetricSpec:  # fmt: skip
    compute = getattr(formulas, name)
    return MetricSpec(name, higher, "value", "numbers", compute, doc, targets, bounds, truth)


def _label(
    name: str, doc: str, *, higher: bool = True, needs: Needs = "classes", targets: Targets = "one"
) -> MetricSpec:
    return MetricSpec(name, higher, "label", needs, getattr(formulas, name), doc, targets)


def _probability(
    name: str, doc: str, *, higher: bool, needs: Needs = "classes", targets: Targets = "one",
    bounds: Interval = ANY,
) -> MetricSpec:  # fmt: skip
    compute = getattr(formulas, name)
    return MetricSpec(name, higher, "probability", needs, compute, doc, targets, bounds)


def _ranking(measure: str, at: int) -> MetricSpec:
    compute, doc = _RANKINGS[measure]
    return MetricSpec(
        name=f"{measure}_{at}",
        higher_is_better=True,
        prediction="value",
        needs="numbers",
        compute=partial(compute, at=at),
        doc=doc.format(at),
        truth=NOT_NEGATIVE,
        beside="group",
    )


_RANKINGS: dict[str, tuple[Callable[..., float], str]] = {
    "ndcg": (ranking.ndcg, "Normalised discounted gain of each group's first {}; linear gain."),
    "map": (ranking.average_precision_at, "Average precision of each group's first {}."),
}
"""Of each there is one for every number of rows that are looked at."""

_ALL = (
    _value("rmse", "Root of the mean squared error.", targets="any"),
    _value("mse", "Mean squared error.", targets="any"),
    _value("mae", "Mean absolute error.", targets="any"),
    _value("median_ae", "Median absolute error.", targets="any"),
    _value("r2", "Share of the variance explained.", higher=True, targets="any"),
    _value("mape", "Mean absolute error as a share of the true value.", targets="any"),
    _value("smape", "Mean of 2·|error| / (|true| + |predicted|), from 0 to 2.", targets="any"),
    _value("wape", "Sum of absolute errors over the sum of absolute true values.", targets="any"),
    _value("rmsle", "RMSE of log(1 + value).", bounds=NOT_NEGATIVE, truth=NOT_NEGATIVE),
    _value("poisson_deviance", "Mean Poisson deviance.", bounds=POSITIVE, truth=NOT_NEGATIVE),
    _value("gamma_deviance", "Mean gamma deviance.", bounds=POSITIVE, truth=POSITIVE),
    _value("pinball_90", "Pinball loss of the 0.9 quantile.", targets="any"),
    _value("pearson", "Correlation.", higher=True),
    _value("spearman", "Correlation of the ranks.", higher=True),
    _value("kendall", "Kendall's tau-b.", higher=True),
    _ranking("ndcg", 10),
    _ranking("map", 3),
    MetricSpec("c_index", True, "value", "numbers", survival.c_index,
               "Harrell's concordance: the share of pairs in their true order.",
               truth=NOT_NEGATIVE, beside="event"),
    _label("accuracy", "Share of right labels."),
    _label("balanced_accuracy", "Mean over the classes of the share found."),
    _label("f1", "Harmonic mean of precision and recall of the positive class.",
           needs="two classes"),
    _label("macro_f1", "F1 of each class, averaged."),
    _label("micro_f1", "F1 of all labels pooled.", targets="any"),
    _label("hamming_loss", "Share of wrong labels.", higher=False, targets="any"),
    _label("mcc", "Matthews' correlation of truth and prediction."),
    _label("kappa", "Cohen's kappa."),
    _label("qwk", "Cohen's kappa with squared distances of the ranks.", needs="ordinal"),
    _probability("auc", "Area under the ROC curve; mean over classes or labels.",
                 higher=True, targets="any"),
    _probability("ks", "Largest distance by which the share found exceeds that of false alarms.",
                 higher=True, needs="two classes"),
    _probability("gini", "2·AUC − 1.", higher=True, needs="two classes"),
    _probability("average_precision", "Area under the precision-recall steps; mean over classes "
                 "or labels.", higher=True, targets="any"),
    _probability("log_loss", "Mean of −log(probability of the true class).",
                 higher=False, targets="any", bounds=UNIT),
    _probability("brier", "Mean squared error of the probability.",
                 higher=False, needs="two classes", bounds=UNIT),
    _probability("lrap", "Label ranking average precision.", higher=True, targets="many"),
    _probability("coverage_error", "How many labels, from the highest, hold all true ones.",
                 higher=False, targets="many"),
    _probability("ranking_loss", "Share of pairs of a true and a false label in the wrong order.",
                 higher=False, targets="many"),
)  # fmt: skip

METRICS: dict[str, MetricSpec] = {spec.name: spec for spec in _ALL}

ALIASES: dict[str, str] = {
    "root_mean_squared_error": "rmse",
    "mcrmse": "rmse",
    "mean_squared_error": "mse",
    "mean_absolute_error": "mae",
    "median_absolute_error": "median_ae",
    "medae": "median_ae",
    "r2_score": "r2",
    "mean_absolute_percentage_error": "mape",
    "root_mean_squared_log_error": "rmsle",
    "mean_poisson_deviance": "poisson_deviance",
    "poisson": "poisson_deviance",
    "mean_gamma_deviance": "gamma_deviance",
    "gamma": "gamma_deviance",
    "pinball": "pinball_90",
    "pearsonr": "pearson",
    "spearmanr": "spearman",
    "kendalltau": "kendall",
    "concordance_index": "c_index",
    "cindex": "c_index",
    "harrell_c": "c_index",
    "acc": "accuracy",
    "accuracy_score": "accuracy",
    "balanced_accuracy_score": "balanced_accuracy",
    "f1_score": "f1",
    "f1_binary": "f1",
    "f1_macro": "macro_f1",
    "f1_micro": "micro_f1",
    "hamming": "hamming_loss",
    "matthews_corrcoef": "mcc",
    "cohen_kappa": "kappa",
    "cohen_kappa_score": "kappa",
    "quadratic_weighted_kappa": "qwk",
    "quadratic_kappa": "qwk",
    "roc_auc": "auc",
    "roc_auc_score": "auc",
    "auroc": "auc",
    "roc_auc_ovr": "auc",
    "ap": "average_precision",
    "average_precision_score": "average_precision",
    "pr_auc": "average_precision",
    "auprc": "average_precision",
    "logloss": "log_loss",
    "cross_entropy": "log_loss",
    "brier_score": "brier",
    "brier_score_loss": "brier",
    "normalized_gini": "gini",
    "kolmogorov_smirnov": "ks",
    "coverage": "coverage_error",
    "label_ranking_loss": "ranking_loss",
    "label_ranking_average_precision": "lrap",
    "label_ranking_average_precision_score": "lrap",
}
"""Other names by which people know a metric, written as `metric_named` compares them."""


def metric_named(name: str) -> MetricSpec:
    """The metric of that name or alias; case, `-`, spaces and scikit-learn's `neg_` do not matter.

    The direction is the metric's own, also for `neg_…`. `ndcg_5` or `MAP@12`: with any number.
    Raises `UsageError`.
    """
    plain = "_".join(name.strip().lower().replace("-", " ").replace("_", " ").split())
    plain = plain.removeprefix("neg_")
    if ranked := _RANKING.fullmatch(plain):
        plain = f"{ranked[1]}_{ranked[2]}"
        return METRICS.get(plain) or _ranking(ranked[1], int(ranked[2]))
    found = METRICS.get(ALIASES.get(plain, plain))
    if found is None:
        raise UsageError(unknown("metric", name, METRICS))
    return found


_RANKING = re.compile(r"(ndcg|map)(?:_?@_?|_at_|_)([1-9]\d{0,5})")


def evaluate(
    spec: MetricSpec, truth: Array, predicted: Array, beside: Array | None = None
) -> tuple[float | None, str]:
    """The finite value, or `None` and the reason why there is none.

    `beside` is there if the metric asks for it.
    """
    arrays = (truth, predicted) if spec.beside is None else (truth, predicted, beside)
    try:
        with np.errstate(all="ignore"):
            value = spec.compute(*arrays)
    except Undefined as reason:
        return None, str(reason)
    if isinstance(value, bool) or not math.isfinite(value):
        return None, "its value is not a finite number"
    return float(value), ""
