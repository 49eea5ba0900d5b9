"""Runs of letters tell a name's language: the longer ones most, weighed and balanced."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pandas as pd
from sklearn import ensemble, linear_model, naive_bayes, neighbors, svm, tree
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from mle_ideator.benchmarks.references import Given, Reference
from mle_ideator.benchmarks.references.encoding import as_given
from mle_ideator.benchmarks.references.models import Model, blended, constants
from mle_ideator.benchmarks.references.tabular import rung

Arrays = tuple[Any, Any]


def references() -> Iterator[Reference]:
    yield from rung("weak", constants(), shape)
    yield from rung("weak", _weak("of its shape"), shape)
    yield from rung("weak", _weak("of letters"), letters)
    yield from rung("boosting", _boosting(), letters)
    yield from rung("boosting", _tuned("of 1 to 2 letters"), pairs)
    yield from rung("boosting", _tuned("of 1 to 3 letters"), triples)
    yield from rung("features", _engineered("of 1 to 4 letters"), weighed)
    yield from rung("full", _full(), long)


def shape(given: Given) -> Arrays:
    """Length, first and last letter, vowels."""
    train, test = as_given(given)
    return _shape(train["surname"]), _shape(test["surname"])


def _shape(names: "pd.Series[str]") -> pd.DataFrame:
    return pd.DataFrame(
        {
            "length": names.str.len(),
            "first": names.str[0].map(ord),
            "last": names.str[-1].map(ord),
            "last but one": names.str[-2].map(ord),
            "vowels": names.str.count("[aeiou]") / names.str.len(),
            "others": names.str.count("[^a-z]"),
        }
    )


def letters(given: Given) -> Arrays:
    """How often each letter occurs."""
    train, test = _runs(CountVectorizer(analyzer="char"), given)
    return train.toarray(), test.toarray()


def pairs(given: Given) -> Arrays:
    return _runs(CountVectorizer(analyzer="char_wb", ngram_range=(1, 2), dtype=float), given)


def triples(given: Given) -> Arrays:
    return _runs(CountVectorizer(analyzer="char_wb", ngram_range=(1, 3), dtype=float), given)


def weighed(given: Given) -> Arrays:
    """Runs of up to four letters, the rare ones counting more."""
    made = TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 4), sublinear_tf=True)
    return _runs(made, given)


def long(given: Given) -> Arrays:
    """Runs of up to five letters, ends of the name included."""
    made = TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 5), sublinear_tf=True)
    return _runs(made, given)


def _runs(vectorizer: Any, given: Given) -> Arrays:
    train, test = as_given(given)
    return vectorizer.fit_transform(train["surname"]), vectorizer.transform(test["surname"])


def _weak(of: str) -> Iterator[Model]:
    for depth in (2, 4, 6, 8, 10, 15, 20):
        yield _model(f"tree depth {depth} {of}", tree.DecisionTreeClassifier, max_depth=depth)
    for number in (1, 5, 20, 50):
        yield _model(
            f"neighbours {number} {of}", neighbors.KNeighborsClassifier, n_neighbors=number
        )
    for smoothing in (0.001, 0.01, 0.1):
        yield _model(f"naive {smoothing:g} {of}", naive_bayes.GaussianNB, var_smoothing=smoothing)
    for number in (5, 10, 30, 100):
        for depth in (6, 12):
            yield _model(
                *(f"forest {number} depth {depth} {of}", ensemble.RandomForestClassifier),
                n_estimators=number,
                max_depth=depth,
            )
    for number in (10, 30, 100):
        yield _model(f"forest {number} {of}", ensemble.RandomForestClassifier, n_estimators=number)
        yield _model(
            f"extra trees {number} {of}", ensemble.ExtraTreesClassifier, n_estimators=number
        )
    yield _model(f"nearest mean {of}", neighbors.NearestCentroid)


def _boosting() -> Iterator[Model]:
    for rate in (0.1, 0.2):
        yield _model(
            *(f"boosting {rate:g} of letters", ensemble.HistGradientBoostingClassifier),
            learning_rate=rate,
            max_iter=25,
            max_leaf_nodes=15,
            early_stopping=False,
        )


def _tuned(of: str) -> Iterator[Model]:
    for strength in (0.1, 0.3, 1.0):
        yield _model(
            f"linear {strength:g} {of}", linear_model.LogisticRegression, **_line(strength)
        )
    for alpha in (0.1, 0.5, 1.0):
        yield _model(f"naive {alpha:g} {of}", naive_bayes.MultinomialNB, alpha=alpha)
    yield _model(f"complement {of}", naive_bayes.ComplementNB, alpha=1.0)
    yield _model(f"margin {of}", svm.LinearSVC, C=0.03)
    yield _model(f"extra trees {of}", ensemble.ExtraTreesClassifier, n_estimators=60)


def _engineered(of: str) -> list[Model]:
    lines = [
        _model(f"linear {strength:g} {of}", linear_model.LogisticRegression, **_line(strength))
        for strength in (3.0, 10.0)
    ]
    naive = [
        _model(f"naive {alpha:g} {of}", naive_bayes.MultinomialNB, alpha=alpha)
        for alpha in (0.03, 0.1, 0.3)
    ]
    complements = [
        _model(f"complement {alpha:g} {of}", naive_bayes.ComplementNB, alpha=alpha)
        for alpha in (0.1, 0.3)
    ]
    margins = [_model(f"margin {c:g} {of}", svm.LinearSVC, C=c) for c in (0.2, 0.5, 1.0)]
    return [
        *lines,
        *naive,
        *complements,
        *margins,
        blended("linear and margin", lines[1], margins[1]),
    ]


def _full() -> list[Model]:
    lines = [
        _model(
            f"linear {c:g}", linear_model.LogisticRegression, class_weight="balanced", **_line(c)
        )
        for c in (10.0, 30.0)
    ]
    margins = [
        _model(f"margin {c:g}", svm.LinearSVC, C=c, class_weight="balanced")
        for c in (0.3, 0.5, 1.0)
    ]
    naive = _model("naive", naive_bayes.MultinomialNB, alpha=0.03)
    complement = _model("complement", naive_bayes.ComplementNB, alpha=0.3)
    near = _model("neighbours", neighbors.KNeighborsClassifier, n_neighbors=15, weights="distance")
    return [
        *lines,
        *margins,
        blended("linear", *lines),
        blended("linear and margin", lines[1], margins[1]),
        blended("linear and naive", lines[1], naive),
        blended("linear, margin and naive", *lines, margins[1], naive),
        blended("linear, margin and complement", *lines, margins[1], complement),
        blended("linear, naive and neighbours", *lines, naive, near),
        blended("all", *lines, *margins, naive, complement, near),
    ]


def _line(strength: float) -> dict[str, Any]:
    return {"C": strength, "max_iter": 60}


def _model(name: str, kind: Callable[..., Any], **options: Any) -> Model:
    if "random_state" in kind().get_params():
        options["random_state"] = 0
    make = partial(kind, **options)
    return Model(name, lambda _: make(), "as made")
