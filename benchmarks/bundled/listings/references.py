"""Titles read: words at first, then size and pieces as numbers, then what each word is worth."""

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix, hstack
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, cross_val_predict

from mle_ideator.benchmarks.references import Given, Reference, models
from mle_ideator.benchmarks.references.encoding import Pair, as_given
from mle_ideator.benchmarks.references.tabular import rung

SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?) ?(ml|cl|l|kg|g|cm|metres|m)\b", re.IGNORECASE)
PIECES = re.compile(r"\b(?:(\d+)x|x(\d+)|(\d+)-pack|(?:pack|set) of (\d+)|(\d+) pcs)(?!\w)")
TO_BASE = {"ml": 1, "cl": 10, "l": 1000, "g": 1, "kg": 1000, "m": 1, "metres": 1, "cm": 0.01}
KIND = {"ml": "l", "cl": "l", "l": "l", "g": "kg", "kg": "kg", "m": "m", "metres": "m", "cm": "m"}


def references() -> Iterator[Reference]:
    yield from rung("weak", models.weak(), as_given)
    yield from rung("boosting", models.boosted(), topics)
    yield from rung("features", models.engineered(), features)
    yield from rung("full", models.best(), full)


def topics(given: Given) -> Pair:
    """Titles as the main directions of their words."""
    train, test = as_given(given)
    words = TfidfVectorizer(sublinear_tf=True, min_df=3)
    directions = TruncatedSVD(40, random_state=0)
    learnt = directions.fit_transform(words.fit_transform(train["title"]))
    applied = directions.transform(words.transform(test["title"]))
    return _beside(train, learnt), _beside(test, applied)


def features(given: Given) -> Pair:
    """With the logarithms of size and of the number of pieces."""
    made = []
    for frame, titles in zip(topics(given), as_given(given), strict=True):
        made.append(pd.concat([frame, _quantities(titles["title"])], axis=1))
    return made[0], made[1]


def full(given: Given) -> Pair:
    """With what a line over words and quantities predicts; out of fold on the training rows."""
    train, test = features(given)
    texts = (frame["title"].str.replace(SIZE, " ", regex=True) for frame in as_given(given))
    words = CountVectorizer(binary=True, min_df=2, ngram_range=(1, 2))
    seen, new = next(texts), next(texts)
    learnt = _matrix(words.fit_transform(seen), train)
    applied = _matrix(words.transform(new), test)
    line, worth = Ridge(0.3), np.log1p(given.y.astype(float))
    folds = KFold(5, shuffle=True, random_state=0)
    return (
        train.assign(line=cross_val_predict(line, learnt, worth, cv=folds)),
        test.assign(line=line.fit(learnt, worth).predict(applied)),
    )


def _beside(offers: pd.DataFrame, columns: np.ndarray) -> pd.DataFrame:
    named = pd.DataFrame(columns, index=offers.index).add_prefix("topic ")
    return pd.concat([offers.drop(columns="title"), named], axis=1)


def _quantities(titles: "pd.Series[str]") -> pd.DataFrame:
    """Logarithms of size and pieces, 0 where none is told; and what is measured."""
    sizes, kinds, pieces = [], [], []
    for title in titles:
        found, counted = SIZE.search(title), PIECES.search(title)
        unit = found[2].lower() if found else "ml"
        sizes.append(np.log(float(found[1]) * TO_BASE[unit]) if found else 0.0)
        kinds.append(KIND[unit])
        pieces.append(np.log(next(float(n) for n in counted.groups() if n)) if counted else 0.0)
    made = {"size": sizes, "measured in": kinds, "pieces": pieces}
    return pd.DataFrame(made, index=titles.index)


def _matrix(words: csr_matrix, offers: pd.DataFrame) -> csr_matrix:
    numbers = offers[["size", "pieces", "free_shipping", "rating"]].to_numpy(float)
    conditions = [(offers["condition"] == name).to_numpy(float) for name in ("opened", "used")]
    kinds = [(offers["measured in"] == name).to_numpy(float) for name in ("l", "m")]
    return hstack([words, csr_matrix(np.column_stack([numbers, *conditions, *kinds]))]).tocsr()
