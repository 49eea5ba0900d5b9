"""The metrics, as scripts compute them on their own validation predictions.

y is (rows,) or (rows, targets); p has its shape for values and labels (as class codes), and for
probabilities is (rows,) for two classes, (rows, classes) for more, (rows, targets) for labels.
"""

# Column names are strings in CSV files, and scikit-learn has no types.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import numpy as np
from scipy.stats import kendalltau, rankdata
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    cohen_kappa_score,
    f1_score,
    label_ranking_average_precision_score,
    matthews_corrcoef,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_gamma_deviance,
    mean_pinball_loss,
    mean_poisson_deviance,
    mean_squared_error,
    median_absolute_error,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
    root_mean_squared_log_error,
)


def rmse(y: np.ndarray, p: np.ndarray) -> float:
    return root_mean_squared_error(y, p)


def mse(y: np.ndarray, p: np.ndarray) -> float:
    return mean_squared_error(y, p)


def mae(y: np.ndarray, p: np.ndarray) -> float:
    return mean_absolute_error(y, p)


def median_ae(y: np.ndarray, p: np.ndarray) -> float:
    return median_absolute_error(y, p)


def r2(y: np.ndarray, p: np.ndarray) -> float:
    return r2_score(y, p)


def mape(y: np.ndarray, p: np.ndarray) -> float:
    return mean_absolute_percentage_error(y, p)


def smape(y: np.ndarray, p: np.ndarray) -> float:
    size = np.abs(y) + np.abs(p)
    return float(np.mean(2 * np.abs(y - p) / np.where(size == 0, 1, size)))


def wape(y: np.ndarray, p: np.ndarray) -> float:
    return float(np.mean(np.abs(y - p).sum(axis=0) / np.abs(y).sum(axis=0)))


def rmsle(y: np.ndarray, p: np.ndarray) -> float:
    return root_mean_squared_log_error(y, np.maximum(p, 0))


def poisson_deviance(y: np.ndarray, p: np.ndarray) -> float:
    return mean_poisson_deviance(y, p)


def gamma_deviance(y: np.ndarray, p: np.ndarray) -> float:
    return mean_gamma_deviance(y, p)


def pinball_90(y: np.ndarray, p: np.ndarray) -> float:
    return mean_pinball_loss(y, p, alpha=0.9)


def pearson(y: np.ndarray, p: np.ndarray) -> float:
    """The correlation; 0 for predictions that do not differ."""
    return float(np.corrcoef(y, p)[0, 1]) if np.ptp(p) > 0 and np.ptp(y) > 0 else 0.0


def spearman(y: np.ndarray, p: np.ndarray) -> float:
    return pearson(rankdata(y), rankdata(p))


def kendall(y: np.ndarray, p: np.ndarray) -> float:
    tau = kendalltau(y, p).statistic
    return float(tau) if np.isfinite(tau) else 0.0


def accuracy(y: np.ndarray, p: np.ndarray) -> float:
    return accuracy_score(y, p)


def balanced_accuracy(y: np.ndarray, p: np.ndarray) -> float:
    return balanced_accuracy_score(y, p)


def f1(y: np.ndarray, p: np.ndarray) -> float:
    return f1_score(y == 1, p == 1, zero_division=0)


def macro_f1(y: np.ndarray, p: np.ndarray) -> float:
    return f1_score(y, p, average="macro", zero_division=0)


def micro_f1(y: np.ndarray, p: np.ndarray) -> float:
    return f1_score(y, p, average="micro", zero_division=0)


def hamming_loss(y: np.ndarray, p: np.ndarray) -> float:
    return float(np.mean(y != p))


def mcc(y: np.ndarray, p: np.ndarray) -> float:
    return matthews_corrcoef(y, p)


def kappa(y: np.ndarray, p: np.ndarray) -> float:
    return cohen_kappa_score(y, p)


def qwk(y: np.ndarray, p: np.ndarray) -> float:
    """Cohen's kappa with squared distances; 0 where only one class occurs."""
    labels = np.arange(min(y.min(), p.min()), max(y.max(), p.max()) + 1)
    if len(labels) == 1:
        return 0.0
    return cohen_kappa_score(y, p, labels=labels, weights="quadratic")


def indicators(y: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Truth as 0 and 1 with one column a class or label, and the predictions, both 2-D.

    Columns without both values are left out: they have no ranking to score.
    """
    p = p.reshape(len(p), -1)
    truth = y.reshape(len(y), -1)
    if truth.shape[1] != p.shape[1]:
        truth = (truth == np.arange(p.shape[1])).astype(int)
    mixed = truth.min(axis=0) != truth.max(axis=0)
    return truth[:, mixed], p[:, mixed]


def auc(y: np.ndarray, p: np.ndarray) -> float:
    """Mean over the classes or labels; 0.5 where nothing can be ranked."""
    truth, p = indicators(y, p)
    return float(roc_auc_score(truth, p)) if truth.size else 0.5


def gini(y: np.ndarray, p: np.ndarray) -> float:
    return 2 * auc(y, p) - 1


def average_precision(y: np.ndarray, p: np.ndarray) -> float:
    truth, p = indicators(y, p)
    return float(average_precision_score(truth, p)) if truth.size else 0.0


def log_loss(y: np.ndarray, p: np.ndarray) -> float:
    """Mean of −log(probability of what is true); for many labels their mean."""
    p = np.clip(p, 1e-15, 1 - 1e-15)
    if p.ndim == 2 and y.ndim == 1:
        p = p / p.sum(axis=1, keepdims=True)
        return float(-np.log(p[np.arange(len(y)), y]).mean())
    return float(-np.where(y == 1, np.log(p), np.log1p(-p)).mean())


def brier(y: np.ndarray, p: np.ndarray) -> float:
    return mean_squared_error(y, p)


def lrap(y: np.ndarray, p: np.ndarray) -> float:
    return label_ranking_average_precision_score(y, p)
