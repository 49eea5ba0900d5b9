"""How well each operation fits a help state: 0 *not at all*, 1 *as usual*, more *made for this*.

Small pure functions of a `Reading`, each for one line of the table in `hints`.
"""

from __future__ import annotations

from collections.abc import Callable

from mle_ideator.ideators.offline.facts import Reading

_TREES = ("model_forest", "model_boosting")
_KERNEL_ROWS = 12_000
_SMALL = 2_000
_YEAR = 366


def when(condition: object, fit: float = 1.0) -> float:
    """The fit where the condition holds, else 0."""
    return fit if condition else 0.0


def _absolute(r: Reading) -> bool:
    return r.metric_has("mae", "mape", "mase", "wape", "absolute", "pinball")


def target_log(r: Reading) -> float:
    if r.classification or r.metric_has("poisson") or r.target_low < 0:
        return 0.0
    if r.log_metric:
        return 1.7
    return when(r.target_skew > 0.75, min(1.3, 0.5 + r.target_skew / 4))


def date_parts(r: Reading) -> float:
    # a month that was seen once says nothing of the next
    short = r.time and max((c.levels for c in r.dates), default=0) < _YEAR
    return when(r.dates, 0.5 if short else 1.0)


def lags(r: Reading) -> float:
    return when(r.time and not r.classification and r.targets <= 1)


def rolling(r: Reading) -> float:
    return lags(r) * (1.0 if "lag_features" in r.recipe else 0.7)


def products(r: Reading) -> float:
    return when(r.tabular and len(r.numbers) >= 2, 1.2 if r.model == "model_linear" else 0.8)


def ratios(r: Reading) -> float:
    return when(r.tabular and len(r.numbers) >= 2)


def target_encoding(r: Reading) -> float:
    return when(r.targets <= 1, 1.2 if r.high_cardinality else when(r.categories, 0.35))


def frequency_encoding(r: Reading) -> float:
    return 1.0 if r.high_cardinality else when(r.categories, 0.3)


def aggregates(r: Reading) -> float:
    return when(r.tabular and r.categories and r.numbers)


def rare(r: Reading) -> float:
    return when(r.high_cardinality, 1.2 if r.model == "model_linear" else 0.6)


def clip_outliers(r: Reading) -> float:
    return when(r.skewed and r.tabular, 0.4 if r.model in _TREES else 1.2)


def impute(r: Reading) -> float:
    most = max((c.missing for c in r.missing), default=0.0)
    return when(r.missing, min(1.2, 0.4 + 4 * most) * (0.5 if r.model == "model_boosting" else 1))


def pca(r: Reading) -> float:
    many = r.image or len(r.numbers) + r.unlisted >= 20
    distance = r.model in ("model_kernel", "model_neighbours", "model_network")
    return when(many, (1.5 if distance else 0.8) if r.image or distance else 0.5)


def text_statistics(r: Reading) -> float:
    return when(r.text, 0.8)


def text_svd(r: Reading) -> float:
    return when(r.text and r.has_text_features, 0.4 if r.model == "model_linear" else 1.2)


def linear(r: Reading) -> float:
    if r.text:
        return 2.5 if r.has_text_features else 1.5
    if r.image:
        return 0.3
    return 1.3 if "lag_features" in r.recipe or r.rows < 500 else 0.6


def forest(r: Reading) -> float:
    if r.text:
        return 0.3
    return 0.7 if r.image else 1.0


def boosting(r: Reading) -> float:
    if r.text:
        return 0.3
    if r.image:
        return 0.5
    return 0.6 if r.rows < 300 else 1.0


def neighbours(r: Reading) -> float:
    return 1.2 if r.image else when(not r.text, 0.4)


def kernel(r: Reading) -> float:
    if r.rows > _KERNEL_ROWS:
        return 0.0
    if r.image:
        return 2.4
    if r.task.prediction == "probability":
        return 0.5  # its scores are no probabilities
    return 0.7 if r.text or r.rows > _SMALL else 1.2


def network(r: Reading) -> float:
    if r.image:
        return 1.7
    return 0.6 if r.text or r.rows < _SMALL else 0.9


def class_weights(r: Reading) -> float:
    if not r.classification or r.model in ("model_neighbours", "model_network"):
        return 0.0
    if r.metric_has("macro", "balanced"):
        return 1.2
    if r.task.prediction == "label" and r.metric_has("f1", "mcc", "kappa", "qwk"):
        return 0.8
    return when(r.metric_has("auc", "averageprecision"), 0.3)


def loss(r: Reading) -> float:
    useful = not r.classification and (_absolute(r) or r.metric_has("poisson", "gamma"))
    return when(useful and r.model in ("model_boosting", "model_linear", None))


def by_group(r: Reading) -> float:
    return when(r.group and not r.time, 0.6 + min(1.0, 3 * max(r.gap, 0.0)))


def by_time(r: Reading) -> float:
    return when(r.time and not r.between, 0.6 + min(1.0, 3 * max(r.gap, 0.0)))


def regularise(r: Reading) -> float:
    return 1.3 if r.gap > 0.1 or r.rows < 1000 else 0.7


def capacity(r: Reading) -> float:
    return 0.5 if r.gap > 0.1 else 1.0


def thresholds(r: Reading) -> float:
    if r.task.prediction != "label":
        return 0.0
    if r.metric_has("f1", "fbeta", "qwk", "kappa", "balancedaccuracy", "mcc", "matthews"):
        return 1.2
    return 0.2


def calibrate(r: Reading) -> float:
    if r.task.prediction != "probability" or not r.metric_has("logloss", "brier"):
        return 0.0
    return 1.5 if r.model in ("model_forest", "model_neighbours", "model_kernel") else 0.7


def clip_predictions(r: Reading) -> float:
    return when(not r.classification, 0.5 if r.model in _TREES else 1.2)


def combination(other: str) -> Callable[[Reading], float]:
    """For a way to combine models: less if it would take the place of the other one."""
    return lambda r: 0.4 if other in r.recipe else when(r.rows >= 200)


def bag_seeds(r: Reading) -> float:
    chance = r.model not in ("model_linear", "model_kernel", "model_neighbours")
    return when(chance or r.recipe & {"blend", "stack"})
