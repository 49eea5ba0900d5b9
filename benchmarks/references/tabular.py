"""The shared ladder for tables: a task brings its features, the models are the same everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd
from scipy.special import softmax

from mle_ideator.benchmarks.references import encoding, models
from mle_ideator.benchmarks.references.encoding import as_given
from mle_ideator.benchmarks.references.models import Model
from mle_ideator.benchmarks.references.outputs import (
    Array,
    Target,
    loss_of,
    to_learn,
    to_submit,
    wish_of,
)
from mle_ideator.benchmarks.references.values import Reference, Rung

if TYPE_CHECKING:
    from mle_ideator.benchmarks.references.values import Given

_ASIDE = 0.2

Features: TypeAlias = Callable[["Given"], tuple[Any, Any]]
"""From what agents see to the features of the training and of the test rows.

Frames with the same columns, rows in the files' order: numbers, texts, ISO dates, blanks; for
models that take them `as made`, arrays or sparse matrices too. It is called once; it must be a
function of the module, and seeded.
"""


def ladder(
    features: Features,
    full: Features,
    *,
    raw: Features = as_given,
    target: Target | None = None,
) -> Iterator[Reference]:
    """Just over 100 references: on `raw` weak and tuned ones, then on `features`, then on `full`.

    `target` is what to learn instead of the target where only the order of predictions counts.
    """
    yield from rung("weak", models.weak(), raw, target)
    yield from rung("boosting", models.boosted(), raw, target)
    yield from rung("features", models.engineered(), features, target)
    yield from rung("full", models.best(), full, target)


def rung(
    name: Rung, chosen: Iterable[Model], features: Features, target: Target | None = None
) -> Iterator[Reference]:
    """References of one rung, named `rung/model`."""
    for model in chosen:
        yield Reference(f"{name}/{model.name}", name, partial(_predict, model, features, target))


def _predict(
    model: Model, features: Features, target: Target | None, given: Given
) -> dict[str, Array]:
    outputs = _outputs(model, features, target, given)
    return to_submit(given, outputs, model.suited)


@lru_cache(maxsize=512)  # blends take what their members have put out
def _outputs(
    model: Model, features: Features, target: Target | None, given: Given
) -> tuple[Array, ...]:
    """For each target column what the model puts out for the test rows."""
    members = model.blend
    if model.best_of:
        ranked = _ranked(model.best_of, features, target, given)
        members = tuple(ranked[place] for place in model.places)
    if members:
        each = [_outputs(member, features, target, given) for member in members]
        return tuple(np.mean(of_target, axis=0) for of_target in zip(*each, strict=True))
    train, test = _encoded(model.encoding, features, given)
    rows = np.arange(train.shape[0])
    if model.most_rows and len(rows) > model.most_rows:
        rows = np.sort(np.random.default_rng(0).permutation(rows)[: model.most_rows])
    learnt = to_learn(given, model.suited, target)
    return tuple(_fitted(model, given, train[rows], y[rows], test) for y in learnt)


@lru_cache(maxsize=16)
def _ranked(
    candidates: tuple[Model, ...], features: Features, target: Target | None, given: Given
) -> list[Model]:
    """The best first, by the loss of the first target on a fifth of the training rows."""
    losses = []
    for model in candidates:
        train, _ = _encoded(model.encoding, features, given)
        y = to_learn(given, model.suited, target)[0]
        aside = np.random.default_rng(0).random(len(y)) < _ASIDE
        output = _fitted(model, given, train[~aside], y[~aside], train[aside])
        losses.append(loss_of(wish_of(given.spec, model.suited), y[aside], output))
    return [candidates[place] for place in np.argsort(losses, kind="stable")]


def _fitted(model: Model, given: Given, train: Any, y: Array, test: Any) -> Array:
    assert model.make is not None  # noqa: S101 - only blends have none
    wish = wish_of(given.spec, model.suited)
    estimator = model.make(wish)
    if (size := getattr(estimator, "max_samples", None)) is not None:
        estimator.set_params(max_samples=size if size < len(y) else None)
    if (size := getattr(estimator, "n_neighbors", None)) is not None:
        estimator.set_params(n_neighbors=min(size, len(y)))
    estimator.fit(train, y)
    if not wish.classify:
        return np.asarray(estimator.predict(test), dtype=float)
    if hasattr(estimator, "predict_proba"):
        likely = estimator.predict_proba(test)
    else:
        margins = estimator.decision_function(test)
        likely = softmax(np.column_stack([-margins, margins]) if margins.ndim == 1 else margins, 1)
    # A class that no row has still needs its column.
    probabilities = np.zeros((test.shape[0], wish.classes))
    probabilities[:, estimator.classes_] = likely
    return probabilities


@lru_cache(maxsize=16)
def _encoded(kind: str, features: Features, given: Given) -> tuple[Any, Any]:
    pair = _made(features, given)
    if kind == "as made":
        one, other = (x.to_numpy() if isinstance(x, pd.DataFrame) else x for x in pair)
        return one, other
    if kind == "numbers":
        pair, kind = encoding.numbers_only(pair), "dense"
    train, test = encoding.dense(pair) if kind == "dense" else encoding.codes(pair)
    return train.to_numpy(), test.to_numpy()


@lru_cache(maxsize=16)
def _made(features: Features, given: Given) -> tuple[Any, Any]:
    return features(given)
