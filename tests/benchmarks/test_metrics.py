"""Metrics: exact right values on tiny examples, directions, names, and what has no value."""

import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mle_ideator.benchmarks.grading import METRICS, MetricSpec, metric_named
from mle_ideator.benchmarks.grading.metrics import ALIASES, evaluate
from mle_ideator.errors import UsageError
from mle_ideator.types import Metric

BINARY = [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]
BINARY_LABELS = [0, 0, 1, 1], [0, 0, 0, 1]
CLASSES = [0, 1, 2, 2], [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5], [0.6, 0.2, 0.2]]
CLASS_LABELS = [0, 1, 2, 2], [0, 1, 2, 0]
NUMBERS = [3, -0.5, 2, 7], [2.5, 0, 2, 8]
POSITIVE = [3, 5, 2.5, 7], [2.5, 5, 4, 8]
RANKS = [1, 2, 3, 4, 5], [5, 6, 7, 8, 7]
MANY_PROBABILITIES = (
    [[1, 0], [0, 1], [1, 1], [0, 0]],
    [[0.9, 0.2], [0.3, 0.8], [0.6, 0.1], [0.4, 0.4]],
)
MANY_SCORES = [[1, 0, 0], [0, 0, 1]], [[0.75, 0.5, 1], [1, 0.2, 0.1]]
MANY_LABELS = [[1, 0], [0, 1], [1, 1], [0, 0]], [[1, 0], [0, 1], [1, 0], [0, 0]]
LIST = [3, 2, 3, 0, 1, 2], [6, 5, 4, 3, 2, 1], [0] * 6
TIMES, SEEN = [5, 3, 8, 10], [1, 1, 0, 1]
"""Survival. Higher predictions mean longer lives: they are risks with the sign turned."""

EXACT = [
    ("auc", BINARY, 0.75),
    ("average_precision", BINARY, 0.8333333),
    ("log_loss", BINARY, 0.4722880),
    ("brier", BINARY, 0.158125),
    ("gini", BINARY, 0.5),
    ("ks", BINARY, 0.5),
    ("accuracy", BINARY_LABELS, 0.75),
    ("f1", BINARY_LABELS, 0.6666667),
    ("mcc", BINARY_LABELS, 0.5773503),
    ("log_loss", ([1, 0], [0.0, 0.0]), 18.0218267),
    ("log_loss", CLASSES, 0.7206009),
    ("accuracy", CLASS_LABELS, 0.75),
    ("macro_f1", CLASS_LABELS, 0.7777778),
    ("micro_f1", CLASS_LABELS, 0.75),
    ("balanced_accuracy", CLASS_LABELS, 0.8333333),
    ("qwk", CLASS_LABELS, 0.3846154),
    ("kappa", CLASS_LABELS, 0.6363636),
    ("qwk", ([0, 1, 2, 3, 4, 2], [0, 2, 2, 3, 3, 1]), 0.8235294),
    ("mse", NUMBERS, 0.375),
    ("rmse", NUMBERS, 0.6123724),
    ("mae", NUMBERS, 0.5),
    ("median_ae", NUMBERS, 0.5),
    ("r2", NUMBERS, 0.9486081),
    ("mape", NUMBERS, 0.3273810),
    ("rmsle", POSITIVE, 0.1993242),
    ("poisson_deviance", POSITIVE, 0.2186179),
    ("gamma_deviance", POSITIVE, 0.0606067),
    ("pinball_90", POSITIVE, 0.175),
    ("smape", POSITIVE, (2 / 11 + 6 / 13 + 2 / 15) / 4),
    ("wape", POSITIVE, 0.1714286),
    ("spearman", RANKS, 0.8207827),
    ("kendall", RANKS, 0.7378648),
    ("pearson", RANKS, 0.8320503),
    ("lrap", MANY_SCORES, 0.4166667),
    ("coverage_error", MANY_SCORES, 2.5),
    ("ranking_loss", MANY_SCORES, 0.75),
    ("auc", MANY_PROBABILITIES, 0.75),
    ("rmse", MANY_PROBABILITIES, 0.4181923),
    ("micro_f1", MANY_LABELS, 0.8571429),
    ("hamming_loss", MANY_LABELS, 0.125),
    ("ndcg_6", LIST, 0.9608082),
    ("ndcg_10", LIST, 0.9608082),
    ("ndcg_3", LIST, 0.9777814),
    ("map_3", ([1, 0, 1], [3, 2, 1], [0, 0, 0]), 0.8333333),
    ("map_3", ([1, 0, 1, 1, 1], [5, 4, 3, 2, 1], [0] * 5), 0.5555556),
    ("map_3", ([0, 0, 0, 1], [4, 3, 2, 1], [0] * 4), 0),
    ("c_index", (TIMES, [-2, -3, -1, -0.5], SEEN), 1),
    ("c_index", (TIMES, [-3, -2, -1, -0.5], SEEN), 0.8),
    ("c_index", (TIMES, [-2, -2, -1, -0.5], SEEN), 0.9),
    ("c_index", (TIMES, [7, 7, 7, 7], SEEN), 0.5),
]

UNDEFINED = [
    ("auc", ([1, 1], [0.2, 0.3]), "both classes"),
    ("gini", ([0, 0], [0.2, 0.3]), "both classes"),
    ("auc", ([0, 1, 1], [[0.5, 0.2, 0.3], [0.1, 0.8, 0.1], [0.2, 0.4, 0.4]]), "both classes"),
    ("auc", ([[1, 0], [1, 1]], [[0.5, 0.2], [0.1, 0.4]]), "both classes"),
    ("average_precision", ([0, 0], [0.2, 0.3]), "a positive row"),
    ("mcc", ([1, 1], [1, 0]), "both classes"),
    ("kappa", ([1, 1], [1, 1]), "more than one class"),
    ("qwk", ([2, 2], [2, 2]), "more than one class"),
    ("f1", ([0, 0], [0, 0]), "no positive row"),
    ("micro_f1", ([[0, 0]], [[0, 0]]), "no positive label"),
    ("r2", ([2, 2], [1, 3]), "true values that differ"),
    ("mape", ([0, 2], [1, 3]), "must not be 0"),
    ("wape", ([0, 0], [1, 3]), "must not be 0"),
    ("spearman", ([1, 2], [3, 3]), "predictions that differ"),
    ("pearson", ([1, 1], [3, 4]), "true values that differ"),
    ("kendall", ([1, 1], [3, 4]), "true values that differ"),
    ("rmse", ([1, 1], [1e200, 4]), "not a finite number"),
    ("ks", ([1, 1], [0.2, 0.3]), "both classes"),
    ("ndcg_10", ([0, 0], [1, 2], [0, 1]), "a group with a relevant row"),
    ("map_3", ([0, 0], [1, 2], [0, 1]), "a group with a relevant row"),
    ("c_index", ([5, 6], [1, 2], [0, 1]), "who came first"),
    ("c_index", ([5, 5], [1, 2], [1, 1]), "who came first"),
]


def value_of(name: str, arrays: tuple[list, ...]) -> tuple[float | None, str]:
    return evaluate(metric_named(name), *map(np.array, arrays))


@pytest.mark.parametrize(("name", "pair", "expected"), EXACT)
def test_exact_values(name, pair, expected):
    value, reason = value_of(name, pair)
    assert value == pytest.approx(expected, abs=6e-8)
    assert type(value) is float
    assert reason == ""


def test_every_metric_has_an_exact_value():
    assert set(METRICS) <= {name for name, _, _ in EXACT}


@pytest.mark.parametrize(("name", "pair", "reason"), UNDEFINED)
def test_no_value_is_unscored_with_a_reason(name, pair, reason):
    value, said = value_of(name, pair)
    assert value is None
    assert reason in said


@pytest.mark.parametrize("value", [True, float("nan"), float("inf"), -float("inf")])
def test_what_is_no_finite_number_is_never_a_score(value):
    spec = MetricSpec("odd", True, "value", "numbers", lambda truth, predicted: value, "")
    assert evaluate(spec, np.zeros(2), np.zeros(2)) == (None, "its value is not a finite number")


def test_qwk_keeps_the_distance_over_a_class_that_does_not_occur():
    near, _ = value_of("qwk", ([0, 1, 0, 1], [0, 1, 1, 0]))
    far, _ = value_of("qwk", ([0, 3, 0, 1], [0, 3, 3, 0]))
    # by hand: observed 9 + 1 over expected (0, 3, 0, 1) × (0, 3, 3, 0)
    observed, expected = (
        10 / 4,
        (0 + 9 + 9 + 0 + 9 + 0 + 0 + 9 + 0 + 9 + 9 + 0 + 1 + 4 + 4 + 1) / 16,
    )
    assert near == pytest.approx(0)
    assert far == pytest.approx(1 - observed / expected)


def test_smape_and_wape_of_zero_predicted_exactly():
    assert value_of("smape", ([0, 1], [0, 1])) == (0, "")
    assert value_of("wape", ([0, 1], [0, 1])) == (0, "")


# ------------------------------------------------------------------------------ directions

LOWER = {
    "rmse", "mse", "mae", "median_ae", "mape", "smape", "wape", "rmsle", "poisson_deviance",
    "gamma_deviance", "pinball_90", "hamming_loss", "log_loss", "brier", "coverage_error",
    "ranking_loss",
}  # fmt: skip


def test_declared_directions():
    assert {name for name, spec in METRICS.items() if not spec.higher_is_better} == LOWER


def perfect_and_worse(spec: MetricSpec, rng: np.random.Generator):
    """Truth, the perfect prediction of it, another one, and the groups or events, if any."""
    n, many = 30, 3 if spec.targets == "many" else 1
    if spec.beside == "group":
        truth = rng.integers(0, 4, n)
        return truth, truth, -truth, np.arange(n) % 3
    if spec.beside == "event":
        return *perfect_and_worse(METRICS["mae"], rng), np.arange(n) % 2
    if spec.needs == "numbers":
        truth = rng.uniform(1, 9, n)
        return truth, truth, rng.uniform(1, 9, n)
    if many > 1:
        truth = np.concatenate([np.eye(3, dtype=int), rng.integers(0, 2, (n, 3))])
        return truth, truth.astype(float), rng.uniform(0.1, 0.9, truth.shape)
    truth = np.concatenate([[0, 1], rng.integers(0, 2, n)])
    if spec.prediction == "label":
        return truth, truth, np.concatenate([[1, 0], rng.integers(0, 2, n)])
    return truth, truth.astype(float), rng.uniform(0.1, 0.9, len(truth))


@pytest.mark.parametrize("spec", METRICS.values(), ids=METRICS.keys())
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_perfect_prediction_has_the_best_score(spec, seed):
    truth, perfect, other, *beside = perfect_and_worse(spec, np.random.default_rng(seed))
    best = spec.metric.score(evaluate(spec, truth, perfect, *beside)[0])
    worse = spec.metric.score(evaluate(spec, truth, other, *beside)[0])
    assert best.better_than(worse)
    expected = 1 if spec.higher_is_better else 0
    if spec.name == "coverage_error":
        expected = truth.sum(axis=1).mean()
    assert best.value == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("spec", METRICS.values(), ids=METRICS.keys())
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), constant=st.booleans())
def test_the_order_of_rows_does_not_matter(spec, seed, constant):
    rng = np.random.default_rng(seed)
    truth, _, other, *beside = perfect_and_worse(spec, rng)
    if constant:
        other = np.full_like(other, other.flat[0])
    order = rng.permutation(len(truth))
    value, _ = evaluate(spec, truth, other, *beside)
    again, _ = evaluate(spec, truth[order], other[order], *(more[order] for more in beside))
    assert again == (value and pytest.approx(value, rel=1e-9, abs=1e-12))


# ----------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("rmse", "rmse"),
        ("RMSE", "rmse"),
        ("neg_root_mean_squared_error", "rmse"),
        ("logloss", "log_loss"),
        ("neg_log_loss", "log_loss"),
        ("Log Loss", "log_loss"),
        ("roc_auc", "auc"),
        ("ROC-AUC", "auc"),
        ("f1_macro", "macro_f1"),
        ("quadratic_weighted_kappa", "qwk"),
        ("balanced-accuracy", "balanced_accuracy"),
        ("NDCG@10", "ndcg_10"),
        ("map@3", "map_3"),
        ("C-Index", "c_index"),
    ],
)
def test_common_names(said, name):
    assert metric_named(said) == METRICS[name]


@pytest.mark.parametrize("said", ["ndcg_5", "NDCG@5", "ndcg at 5"])
def test_rankings_of_any_length(said):
    assert metric_named(said).name == "ndcg_5"
    assert metric_named(said).metric == Metric("ndcg_5", True)


@pytest.mark.parametrize("said", ["ndcg", "ndcg_0", "map_3.5"])
def test_a_ranking_has_a_length(said):
    with pytest.raises(UsageError, match=r"did you mean '(ndcg_10|map_3)'"):
        metric_named(said)


def test_aliases_lead_to_metrics_and_hide_none():
    assert set(ALIASES.values()) <= set(METRICS)
    assert not set(ALIASES) & set(METRICS)
    for alias, name in ALIASES.items():
        assert metric_named(alias) is METRICS[name]


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(UsageError, match=re.escape("unknown metric 'rsme'; did you mean 'rmse'?")):
        metric_named("rsme")


def test_metric_of_a_spec():
    assert METRICS["auc"].metric == Metric("auc", True)


def test_listing_the_metrics_imports_nothing_heavy():
    code = (
        "import sys; from mle_ideator.benchmarks.grading import METRICS; assert METRICS; "
        "print([m for m in ('sklearn', 'scipy', 'pandas', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
