"""The metrics as functions of two arrays, by scikit-learn where it has them.

Those that take a third one, the group or the event, are in `ranking` and `survival`.

Shapes, for n rows, k targets and c classes:

    value        truth (n,) or (n, k), predicted the same, float
    label        truth (n,) or (n, k), predicted the same, class codes 0, 1, …
    probability  truth (n,) codes and predicted (n,) for two classes, (n, c) for more;
                 truth (n, k) of 0 and 1 and predicted (n, k) for many labels

Several targets are averaged with equal weight. `Undefined` is raised where the metric has no
value; nothing is put in its place. scikit-learn and SciPy are imported when first used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Undefined(Exception):
    """The metric has no value on these arrays; the message is the reason, without numbers."""


def _both_classes(truth: Array) -> None:
    if truth.ndim == 1:
        truth = truth[:, None]
    if (truth.min(axis=0) == truth.max(axis=0)).any():
        raise Undefined("it needs both classes among the scored rows")


def _indicators(truth: Array, predicted: Array) -> Array:
    """Truth as 0/1 in the shape of `predicted`: one column a class."""
    if truth.ndim == predicted.ndim:
        return truth
    return np.asarray(truth[:, None] == np.arange(predicted.shape[1]), np.int8)


# ---------------------------------------------------------------------------------- values


def mse(truth: Array, predicted: Array) -> float:
    from sklearn.metrics import mean_squared_error

    return float(mean_squared_error(truth, predicted))


def rmse(truth: Array, predicted: Array) -> float:
    from sklearn.metrics import root_mean_squared_error

    return float(root_mean_squared_error(truth, predicted))


def mae(truth: Array, predicted: Array) -> float:
    from sklearn.metrics import mean_absolute_error

    return float(mean_absolute_error(truth, predicted))


def median_ae(truth: Array, predicted: Array) -> float:
    from sklearn.metrics import median_absolute_error

    return float(median_absolute_error(truth, predicted))


def r2(truth: Array, predicted: Array) -> float:
    from sklearn.metrics import r2_score

    if (truth.min(axis=0) == truth.max(axis=0)).any():
        raise Undefined("it needs true values that differ")
    return float(r2_score(truth, predicted))


def mape(truth: Array, predicted: Array) -> float:
    from sklearn.metrics import mean_absolute_percentage_error

    if (truth == 0).any():
        raise Undefined("it divides by the true values, which must not be 0")
    return float(mean_absolute_percentage_error(truth, predicted))


def smape(truth: Array, predicted: Array) -> float:
    size = np.abs(truth) + np.abs(predicted)
    return float(np.mean(2 * np.abs(truth - predicted) / np.where(size == 0, 1, size)))


def wape(truth: Array, predicted: Array) -> float:
    total = np.abs(truth).sum(axis=0)
    if np.any(total == 0):
        raise Undefined("it divides by the sum of the true values, which must not be 0")
    return float(np.mean(np.abs(truth - predicted).sum(axis=0) / total))


def rmsle(truth: Array, predicted: Array) -> float:
    from sklearn.metrics import root_mean_squared_log_error

    return float(root_mean_squared_log_error(truth, predicted))


def poisson_deviance(truth: Array, predicted: Array) -> float:
    from sklearn.metrics import mean_poisson_deviance

    return float(mean_poisson_deviance(truth, predicted))


def gamma_deviance(truth: Array, predicted: Array) -> float:
    from sklearn.metrics import mean_gamma_deviance

    return float(mean_gamma_deviance(truth, predicted))


def pinball_90(truth: Array, predicted: Array) -> float:
    from sklearn.metrics import mean_pinball_loss

    return float(mean_pinball_loss(truth, predicted, alpha=0.9))


def _both_vary(truth: Array, predicted: Array) -> None:
    if truth.min() == truth.max():
        raise Undefined("it needs true values that differ")
    if predicted.min() == predicted.max():
        raise Undefined("it needs predictions that differ")


def pearson(truth: Array, predicted: Array) -> float:
    _both_vary(truth, predicted)
    return float(np.corrcoef(truth, predicted)[0, 1])


def spearman(truth: Array, predicted: Array) -> float:
    from scipy.stats import rankdata

    return pearson(rankdata(truth), rankdata(predicted))


def kendall(truth: Array, predicted: Array) -> float:
    from scipy.stats import kendalltau

    _both_vary(truth, predicted)
    return float(kendalltau(truth, predicted).statistic)


# ---------------------------------------------------------------------------------- labels


def accuracy(truth: Array, predicted: Array) -> float:
    from sklearn.metrics import accuracy_score

    return float(accuracy_score(truth, predicted))


def balanced_accuracy(truth: Array, predicted: Array) -> float:
    from sklearn.metrics import recall_score

    present = np.unique(truth)
    recall = recall_score(truth, predicted, labels=present, average="macro", zero_division=0)
    return float(recall)


def f1(truth: Array, predicted: Array) -> float:
    from sklearn.metrics import f1_score

    positive, called = truth == 1, predicted == 1
    if not (positive.any() or called.any()):
        raise Undefined("there is no positive row, neither true nor predicted")
    return float(f1_score(positive, called, zero_division=0))


def macro_f1(truth: Array, predicted: Array) -> float:
    from sklearn.metrics import f1_score

    return float(f1_score(truth, predicted, average="macro", zero_division=0))


def micro_f1(truth: Array, predicted: Array) -> float:
    from sklearn.metrics import f1_score

    if truth.ndim == 2 and not (truth.any() or predicted.any()):
        raise Undefined("there is no positive label, neither true nor predicted")
    return float(f1_score(truth, predicted, average="micro", zero_division=0))


def hamming_loss(truth: Array, predicted: Array) -> float:
    return float(np.mean(truth != predicted))


def mcc(truth: Array, predicted: Array) -> float:
    from sklearn.metrics import matthews_corrcoef

    _both_classes(truth)
    return float(matthews_corrcoef(truth, predicted))


def kappa(truth: Array, predicted: Array) -> float:
    return _kappa(truth, predicted, None)


def qwk(truth: Array, predicted: Array) -> float:
    return _kappa(truth, predicted, "quadratic")


def _kappa(truth: Array, predicted: Array, weights: str | None) -> float:
    from sklearn.metrics import cohen_kappa_score

    low = int(min(truth.min(), predicted.min()))
    high = int(max(truth.max(), predicted.max()))
    if low == high:
        raise Undefined("it needs more than one class among the scored rows")
    # all classes between, also those that do not occur: else their distances would shrink
    labels = np.arange(low, high + 1)
    return float(cohen_kappa_score(truth, predicted, labels=labels, weights=weights))


# --------------------------------------------------------------------------- probabilities


def auc(truth: Array, predicted: Array) -> float:
    from sklearn.metrics import roc_auc_score

    truth = _indicators(truth, predicted)
    _both_classes(truth)
    return float(roc_auc_score(truth, predicted))


def ks(truth: Array, predicted: Array) -> float:
    from sklearn.metrics import roc_curve

    _both_classes(truth)
    false_alarms, found, _ = roc_curve(truth == 1, predicted)
    return float(np.max(found - false_alarms))


def gini(truth: Array, predicted: Array) -> float:
    return 2 * auc(truth, predicted) - 1


def average_precision(truth: Array, predicted: Array) -> float:
    from sklearn.metrics import average_precision_score

    truth = _indicators(truth, predicted)
    if not truth.any(axis=0).all():
        raise Undefined("it needs a positive row among the scored ones")
    return float(average_precision_score(truth, predicted))


def log_loss(truth: Array, predicted: Array) -> float:
    """Natural logarithm; probabilities are clipped at the float's machine epsilon."""
    from sklearn.metrics import log_loss as loss

    if truth.ndim == 2:
        columns = zip(truth.T, predicted.T, strict=True)
        return float(np.mean([loss(t, p, labels=[0, 1]) for t, p in columns]))
    classes = 2 if predicted.ndim == 1 else predicted.shape[1]
    return float(loss(truth, predicted, labels=np.arange(classes)))


def brier(truth: Array, predicted: Array) -> float:
    return mse(truth, predicted)


def lrap(truth: Array, predicted: Array) -> float:
    from sklearn.metrics import label_ranking_average_precision_score

    return float(label_ranking_average_precision_score(truth, predicted))


def coverage_error(truth: Array, predicted: Array) -> float:
    from sklearn.metrics import coverage_error as coverage

    return float(coverage(truth, predicted))


def ranking_loss(truth: Array, predicted: Array) -> float:
    from sklearn.metrics import label_ranking_loss

    return float(label_ranking_loss(truth, predicted))
