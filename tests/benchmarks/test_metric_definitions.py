"""Each metric against its definition, spelt out row by row, or scikit-learn called another way."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from mle_ideator.benchmarks.grading import METRICS, metric_named
from mle_ideator.benchmarks.grading.metrics import NOT_NEGATIVE, POSITIVE, MetricSpec, evaluate
from mle_ideator.benchmarks.trivial import trivial_predictions

# ----------------------------------------------------------------------------- definitions


def mean(values) -> float:
    values = list(values)
    return sum(values) / len(values)


def rows_of(distance: Callable[[float, float], float]):
    return lambda t, p: mean(distance(a, b) for a, b in zip(t.ravel(), p.ravel(), strict=True))


def pairs(*arrays):
    return itertools.combinations(list(zip(*arrays, strict=True)), 2)


def sign(value) -> int:
    return int(value > 0) - int(value < 0)


def ranks(values):
    return np.array([mean(i for i, v in enumerate(sorted(values), 1) if v == w) for w in values])


def pearson(t, p):
    t, p = t - t.mean(), p - p.mean()
    return (t * p).sum() / math.sqrt((t * t).sum() * (p * p).sum())


def kendall(t, p):
    said = [(sign(a[0] - b[0]), sign(a[1] - b[1])) for a, b in pairs(t, p)]
    return sum(a * b for a, b in said) / math.sqrt(
        sum(a != 0 for a, _ in said) * sum(b != 0 for _, b in said)
    )


def recall(t, p, c):
    return mean(p[t == c] == c)


def f1_of(t, p, c=1):
    both = ((t == c) & (p == c)).sum()
    return 2 * both / max((t == c).sum() + (p == c).sum(), 1)


def macro_f1(t, p):
    return mean(f1_of(t, p, c) for c in set(t) | set(p))


def agreement(distance):
    def kappa(t, p):
        seen = mean(distance(a, b) for a, b in zip(t, p, strict=True))
        return 1 - seen / mean(distance(a, b) for a in t for b in p)

    return kappa


def auc(t, p):
    yes, no = p[t == 1], p[t == 0]
    return mean((a > b) + (a == b) / 2 for a in yes for b in no)


def average_precision(t, p):
    limits = sorted(set(p), reverse=True)
    found = [((p >= limit) & (t == 1)).sum() for limit in limits]
    precision = [f / (p >= limit).sum() for f, limit in zip(found, limits, strict=True)]
    gained = np.diff([0, *found]) / (t == 1).sum()
    return (np.array(precision) * gained).sum()


def ks(t, p):
    return max([0, *(mean(p[t == 1] >= limit) - mean(p[t == 0] >= limit) for limit in p)])


def of_rows(measure):
    return lambda t, p: mean(measure(a == 1, b) for a, b in zip(t, p, strict=True))


def row_precision(true, scores):
    if not true.any() or true.all():
        return 1
    return mean((scores[true] >= s).sum() / (scores >= s).sum() for s in scores[true])


def row_coverage(true, scores):
    return (scores >= scores[true].min()).sum() if true.any() else 0


def row_ranking_loss(true, scores):
    wrong = [a <= b for a in scores[true] for b in scores[~true]]
    return mean(wrong) if wrong else 0


def concordance(t, p, event):
    right = comparable = 0
    for a, b in itertools.permutations(zip(t, p, event, strict=True), 2):
        if a[2] and (a[0] < b[0] or (a[0] == b[0] and not b[2])):
            comparable += 1
            right += (a[1] < b[1]) + (a[1] == b[1]) / 2
    return right / comparable


def in_groups(measure):
    def over_groups(t, p, group):
        each = [(t[group == g], p[group == g]) for g in set(group)]
        return mean(average_order(measure, a, b) for a, b in each if a.any())

    return over_groups


def average_order(measure, t, p):
    """Over all orders that the predictions allow, each as likely as the others."""
    allowed = [
        order
        for order in itertools.permutations(range(len(t)))
        if all(p[a] >= p[b] for a, b in itertools.pairwise(order))
    ]
    return mean(measure([t[i] for i in order]) for order in allowed)


def ndcg_of(relevance, at):
    gain = [sum(r / math.log2(i + 2) for i, r in enumerate(some[:at]))
            for some in (relevance, sorted(relevance, reverse=True))]  # fmt: skip
    return gain[0] / gain[1]


def average_precision_of(relevance, at):
    hits = [r > 0 for r in relevance]
    precision = [sum(hits[: i + 1]) / (i + 1) for i in range(min(at, len(hits))) if hits[i]]
    return sum(precision) / min(at, sum(hits))


def per_column(measure):
    """The mean over targets, or over the classes, each against the rest."""

    def columns(t, p):
        if t.ndim == p.ndim == 1:
            return measure(t, p)
        if t.ndim == 1:
            t = np.column_stack([t == c for c in range(p.shape[1])]).astype(int)
        return mean(measure(a, b) for a, b in zip(t.T, p.T, strict=True))

    return columns


def log_loss(t, p):
    if p.ndim == 2 and t.ndim == 1:
        return mean(-math.log(row[c]) for c, row in zip(t, p, strict=True))
    return rows_of(lambda a, b: -math.log(b if a == 1 else 1 - b))(t, p)


def mcc(t, p):
    classes = sorted({*t, *p})
    t, p = ([[v == c for c in classes] for v in values] for values in (t, p))
    t, p = (np.array(m, float) - np.mean(m, axis=0) for m in (t, p))
    both = math.sqrt((t * t).sum() * (p * p).sum())
    return (t * p).sum() / both if both > 1e-12 else 0


DEFINITIONS: dict[str, Callable[..., float]] = {
    "mse": rows_of(lambda a, b: (a - b) ** 2),
    "rmse": per_column(lambda t, p: math.sqrt(mean((t - p) ** 2))),
    "mae": rows_of(lambda a, b: abs(a - b)),
    "median_ae": per_column(lambda t, p: np.median(abs(t - p))),
    "r2": per_column(lambda t, p: 1 - sum((t - p) ** 2) / sum((t - t.mean()) ** 2)),
    "mape": rows_of(lambda a, b: abs(a - b) / abs(a)),
    "smape": rows_of(lambda a, b: 2 * abs(a - b) / (abs(a) + abs(b)) if a or b else 0),
    "wape": per_column(lambda t, p: sum(abs(t - p)) / sum(abs(t))),
    "rmsle": lambda t, p: math.sqrt(mean((np.log(1 + t) - np.log(1 + p)) ** 2)),
    "poisson_deviance": rows_of(lambda a, b: 2 * ((a and a * math.log(a / b)) - a + b)),
    "gamma_deviance": rows_of(lambda a, b: 2 * (math.log(b / a) + a / b - 1)),
    "pinball_90": rows_of(lambda a, b: 0.9 * (a - b) if a > b else 0.1 * (b - a)),
    "pearson": pearson,
    "spearman": lambda t, p: pearson(ranks(t), ranks(p)),
    "kendall": kendall,
    "ndcg_10": in_groups(lambda relevance: ndcg_of(relevance, 10)),
    "ndcg_2": in_groups(lambda relevance: ndcg_of(relevance, 2)),
    "map_3": in_groups(lambda relevance: average_precision_of(relevance, 3)),
    "map_1": in_groups(lambda relevance: average_precision_of(relevance, 1)),
    "map_9": in_groups(lambda relevance: average_precision_of(relevance, 9)),
    "c_index": concordance,
    "accuracy": lambda t, p: mean(t == p),
    "balanced_accuracy": lambda t, p: mean(recall(t, p, c) for c in set(t)),
    "f1": f1_of,
    "macro_f1": macro_f1,
    "micro_f1": lambda t, p: f1_of(t, p) if t.ndim == 2 else mean(t == p),
    "hamming_loss": lambda t, p: mean((t != p).ravel()),
    "mcc": mcc,
    "kappa": agreement(lambda a, b: a != b),
    "qwk": agreement(lambda a, b: (a - b) ** 2),
    "auc": per_column(auc),
    "gini": lambda t, p: 2 * auc(t, p) - 1,
    "ks": ks,
    "average_precision": per_column(average_precision),
    "log_loss": log_loss,
    "brier": sk.brier_score_loss,
    "lrap": of_rows(row_precision),
    "coverage_error": of_rows(row_coverage),
    "ranking_loss": of_rows(row_ranking_loss),
}


def test_every_metric_is_defined():
    assert set(METRICS) <= set(DEFINITIONS)


# -------------------------------------------------------------------------------- examples

Arrays = tuple[np.ndarray, ...]


def arrays_for(spec: MetricSpec, rng: np.random.Generator, n: int, width: int) -> Arrays:
    """Truth and predictions with many ties, in one of the shapes that the metric takes."""
    if spec.beside:
        return (
            rng.integers(0, 4, n),
            rng.integers(0, 3, n).astype(float),
            rng.integers(0, 2 if spec.beside == "event" else 3, n),
        )
    columns = {"one": 1, "many": width + 1, "any": width}[spec.targets]
    shape = (n, columns) if columns > 1 else (n,)
    if spec.needs == "numbers":
        low = -4 if spec.truth not in (NOT_NEGATIVE, POSITIVE) else int(spec.truth == POSITIVE)
        least = 1 if spec.bounds == POSITIVE else low
        truth = rng.integers(low, 5, shape).astype(float)
        if spec.name == "mape":
            truth[truth == 0] = 5
        return truth, rng.integers(least, 9, shape) / 2 + 0.5
    if spec.prediction == "label":
        most = 2 if columns > 1 or spec.needs == "two classes" else 4
        return rng.integers(0, most, shape), rng.integers(0, most, shape)
    predicted = rng.integers(1, 10, shape) / 10
    if columns > 1 and spec.targets == "any" and rng.random() < 0.5:
        return rng.integers(0, columns, n), predicted / predicted.sum(axis=1, keepdims=True)
    return rng.integers(0, 2, shape), predicted


@pytest.mark.parametrize("name", DEFINITIONS)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 12), width=st.integers(1, 3))
def test_a_metric_is_what_its_definition_says(name, seed, n, width):
    spec = metric_named(name)
    arrays = arrays_for(spec, np.random.default_rng(seed), n, width)
    value, reason = evaluate(spec, *arrays)
    if value is None:
        assert reason
        assert "finite" not in reason
        assume(n < 5)  # where there is enough, there is a value
        return
    assert value == pytest.approx(DEFINITIONS[name](*arrays), rel=1e-9, abs=1e-9)


# --------------------------------------------------------------------- rankings, large ones


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), lists=st.integers(1, 8), length=st.integers(2, 40))
def test_ndcg_is_scikit_learns_with_its_ties(seed, lists, length):
    rng = np.random.default_rng(seed)
    relevance = rng.integers(0, 4, (lists, length))
    relevance[:, 0] = 1
    scores = rng.integers(0, 6, (lists, length))
    expected = sk.ndcg_score(relevance, scores, k=10)
    order = rng.permutation(lists * length)
    group = np.repeat(np.arange(lists), length)
    arrays = [values[order] for values in (relevance.ravel(), scores.ravel() * 1.0, group)]
    assert evaluate(METRICS["ndcg_10"], *arrays)[0] == pytest.approx(expected, abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 150), distinct=st.integers(1, 200))
@example(seed=0, n=150, distinct=1)
def test_concordance_of_many(seed, n, distinct):
    rng = np.random.default_rng(seed)
    arrays = (
        rng.integers(0, distinct, n) / 3,
        rng.integers(-distinct, distinct, n) / 7,
        rng.integers(0, 2, n),
    )
    value, reason = evaluate(METRICS["c_index"], *arrays)
    if value is None:
        assert "came first" in reason
    else:
        assert value == pytest.approx(concordance(*arrays), abs=1e-12)


def test_groups_without_anything_relevant_do_not_count():
    relevance, predicted = np.array([0, 0, 1, 0]), np.array([1.0, 2, 2, 1])
    for name in ("ndcg_10", "map_3"):
        value, _ = evaluate(METRICS[name], relevance, predicted, np.array([0, 0, 1, 1]))
        assert value == 1


def test_ratings_count_in_ndcg_and_only_their_presence_in_map():
    predicted, group = np.array([2.0, 1]), np.zeros(2, int)
    worse, better = np.array([1, 3]), np.array([3, 1])
    ndcg = [evaluate(METRICS["ndcg_10"], t, predicted, group)[0] for t in (worse, better)]
    assert ndcg[0] < ndcg[1] == 1
    assert evaluate(METRICS["map_3"], worse, predicted, group)[0] == 1


# -------------------------------------------------------------------------------- trivial

UNDEFINED_FOR_A_CONSTANT = {"pearson", "spearman", "kendall"}


@pytest.mark.parametrize("spec", METRICS.values(), ids=METRICS.keys())
def test_the_trivial_prediction_has_a_score(spec):
    import pandas as pd

    rng = np.random.default_rng(0)
    truth, *rest = arrays_for(spec, rng, 60, 2)
    while spec.prediction == "probability" and truth.ndim < rest[0].ndim:  # want no classes here
        truth, *rest = arrays_for(spec, rng, 60, 2)
    columns = [f"y{i}" for i in range(truth.shape[1] if truth.ndim == 2 else 1)]
    frame = pd.DataFrame(truth.reshape(60, -1), columns=columns)
    constants = trivial_predictions(frame, spec.name, spec.prediction)
    predicted = np.array([[float(constants[name]) for name in columns]] * 60)
    predicted = predicted if truth.ndim == 2 else predicted[:, 0]
    value, reason = evaluate(spec, truth, predicted, *rest[1:])
    assert (value is None) == (spec.name in UNDEFINED_FOR_A_CONSTANT), reason
