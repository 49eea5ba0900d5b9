"""What models are to learn for a metric, and from what they put out to a submission."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mle_ideator.benchmarks.grading import metric_named
from mle_ideator.benchmarks.grading.cells import in_order

if TYPE_CHECKING:
    from mle_ideator.benchmarks.declared.spec import Spec
    from mle_ideator.benchmarks.references.values import Given

Array = npt.NDArray[Any]
Target = Callable[["Given"], "pd.Series[Any]"]
"""What to learn instead of the target, where only the order of predictions counts."""

_LOSSES = {
    "mae": "absolute_error",
    "median_ae": "absolute_error",
    "mape": "absolute_error",
    "smape": "absolute_error",
    "wape": "absolute_error",
    "poisson_deviance": "poisson",
    "gamma_deviance": "gamma",
    "pinball_90": "quantile",
}
_LEAST = 1e-3
"""Stands for 0 where predictions must be above it."""


@dataclass(frozen=True)
class Wish:
    """What an estimator is to be."""

    classes: int = 0
    """To tell apart, with `predict_proba`; 0: a regressor."""
    loss: str = "squared_error"
    """Of a regressor that can choose, in scikit-learn's words for boosting."""
    targets: int = 1
    """So many columns are learnt, each by an estimator of its own."""

    @property
    def classify(self) -> bool:
        return self.classes > 0


def wish_of(spec: Spec, suited: bool) -> Wish:
    """What models of the task are; with the metric's own loss if `suited`."""
    metric, targets = metric_named(spec.metric), len(spec.targets)
    if metric.prediction == "value":
        loss = _LOSSES.get(metric.name, "squared_error") if suited else "squared_error"
        return Wish(loss=loss, targets=targets)
    if metric.needs == "ordinal":
        return Wish()
    return Wish(classes=2 if targets > 1 else max(2, len(spec.classes)), targets=targets)


def loss_of(wish: Wish, y: Array, output: Array) -> float:
    """How far an output is from what was to be learnt: what models are tuned by; less is better."""
    if wish.classify:
        likely = np.clip(output[np.arange(len(y)), y], 1e-6, 1)
        return float(-np.log(likely).mean())
    if wish.loss == "absolute_error":
        return float(np.abs(y - output).mean())
    if wish.loss == "quantile":
        return float(np.maximum(0.9 * (y - output), 0.1 * (output - y)).mean())
    if wish.loss in ("poisson", "gamma"):
        expected = np.maximum(output, _LEAST)
        return float((expected - y * np.log(expected)).mean())
    return float(((y - output) ** 2).mean())


def to_learn(given: Given, suited: bool, target: Target | None = None) -> list[Array]:
    """For each target column numbers or class codes, in the order of the training rows."""
    spec = given.spec
    metric = metric_named(spec.metric)
    if target is not None:
        return [target(given).to_numpy()]
    columns = [given.train[name] for name in spec.targets]
    if metric.prediction == "value":
        numbers = [column.to_numpy(dtype=float) for column in columns]
        return [np.log1p(y) for y in numbers] if suited and spec.metric == "rmsle" else numbers
    names = pd.Index(list(classes_of(spec)))
    return [names.get_indexer(pd.Index(column.astype(str))) for column in columns]


def classes_of(spec: Spec) -> tuple[str, ...]:
    """Class names in the order of their codes."""
    if len(spec.targets) > 1 or not spec.classes:
        return ("0", "1")
    if metric_named(spec.metric).needs == "ordinal":
        return tuple(in_order(spec.classes))
    return spec.classes


def to_submit(given: Given, outputs: Sequence[Array], suited: bool) -> dict[str, Array]:
    """Predictions by submission column, from an output for each target column.

    An output is (n,) numbers in the scale of `to_learn`, or (n, classes) probabilities.
    """
    spec = given.spec
    metric = metric_named(spec.metric)
    if metric.prediction == "value":
        if suited and spec.metric == "rmsle":
            outputs = [np.expm1(output) for output in outputs]
        low = metric.bounds.low + (_LEAST if metric.bounds.above_low else 0)
        clipped = [np.clip(output, low, metric.bounds.high) for output in outputs]
        return dict(zip(spec.targets, clipped, strict=True))
    if metric.prediction == "probability":
        if len(spec.columns) > len(spec.targets):
            return dict(zip(spec.columns, outputs[0].T, strict=True))
        return {name: out[:, 1] for name, out in zip(spec.targets, outputs, strict=True)}
    names = np.array(classes_of(spec))
    chosen = [_labels(given, output, suited) for output in outputs]
    return dict(zip(spec.targets, (names[codes] for codes in chosen), strict=True))


def _labels(given: Given, output: Array, suited: bool) -> Array:
    """The class codes to answer with."""
    if output.ndim == 1:
        return _ranks(given, output, suited)
    if suited and given.spec.metric in ("balanced_accuracy", "macro_f1"):
        # The rare count as much as the frequent: wholly for the one, about half for the other.
        shares = np.clip(_class_shares(given), 1e-9, None)
        output = output / shares ** (1.0 if given.spec.metric == "balanced_accuracy" else 0.5)
    return np.asarray(output.argmax(axis=1))


def _ranks(given: Given, output: Array, suited: bool) -> Array:
    """Ordinal classes from numbers: rounded, or cut so that each is as frequent as in train."""
    most = len(classes_of(given.spec)) - 1
    if not suited:
        return np.clip(np.rint(output), 0, most).astype(int)
    cuts = np.quantile(output, np.clip(np.cumsum(_class_shares(given))[:-1], 0, 1))
    return np.searchsorted(cuts, output, side="left")


def _class_shares(given: Given) -> Array:
    counts = given.y.astype(str).value_counts(normalize=True)
    return counts.reindex(list(classes_of(given.spec)), fill_value=0.0).to_numpy()
