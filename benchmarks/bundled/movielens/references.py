"""What others gave a movie, free of how generous each is, then tastes: genres, years, likeness."""

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import TypeAlias

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.references import Given, Reference, models
from mle_ideator.benchmarks.references.encoding import Pair, as_given, means_by
from mle_ideator.benchmarks.references.outputs import Array
from mle_ideator.benchmarks.references.tabular import rung

Made: TypeAlias = Callable[[Given, pd.DataFrame, pd.DataFrame], Array]
"""A column for the last rows, made from the ratings of those before."""


def references() -> Iterator[Reference]:
    yield from rung("weak", models.weak(), as_given)
    yield from rung("boosting", models.boosted(), with_movies)
    yield from rung("features", models.engineered(), features, above_own_mean)
    yield from rung("full", models.best(), full, above_own_mean)
    for size in (4, 8):
        for penalty in (6.0, 12.0):
            name = f"full/factors {size} penalty {penalty:g}"
            yield Reference(name, "full", partial(by_factors, size=size, penalty=penalty))


def with_movies(given: Given) -> Pair:
    """With the movie's year and main genre."""
    movies = given.tables["movies"].set_index("movie")
    made = []
    for frame in as_given(given):
        of = movies.reindex(frame["movie"]).reset_index(drop=True)
        made.append(frame.assign(year=of["year"], genre=of["genres"].str.split("|").str[0]))
    return made[0], made[1]


def features(given: Given) -> Pair:
    """With the movie's mean rating above its raters' own means, and how many rated it."""
    train, test = with_movies(given)
    rest = above_own_mean(given)
    for weight in (3, 15):
        name = f"movie above {weight}"
        train[name], test[name] = means_by(given, ["movie"], rest, weight=weight)
    times = pd.concat([train["movie"], test["movie"]]).value_counts()
    return tuple(  # type: ignore[return-value]
        frame.assign(times=frame["movie"].map(times)).drop(columns="movie")
        for frame in (train, test)
    )


def full(given: Given) -> Pair:
    """With the user's taste for the movie's genres, for its years, and for movies like it."""
    train, test = features(given)
    for name, (inside, outside) in {
        "genres": _folded(given, _taste),
        "factors": _folded(given, partial(_factored, size=6, penalty=8.0)),
        "alike": _folded(given, _alike),
    }.items():
        train[name], test[name] = inside, outside
    return tuple(  # type: ignore[return-value]
        frame.drop(columns=["user", "date"]).assign(genre=frame["genre"]) for frame in (train, test)
    )


def above_own_mean(given: Given) -> "pd.Series[float]":
    """Ratings less the user's mean: only the order within a user counts."""
    return given.y - given.y.groupby(given.train["user"]).transform("mean")


def by_factors(given: Given, size: int, penalty: float) -> Array:
    kept = given.train.assign(rest=above_own_mean(given))
    return _movie_means(kept, given.test) + _factored(given, kept, given.test, size, penalty)


def _folded(given: Given, make: Made) -> tuple[Array, Array]:
    """A column made from other rows only: out of fold for the training rows."""
    train = given.train.assign(rest=above_own_mean(given))
    fold = np.random.default_rng(1).integers(0, 4, len(train))
    inside = np.zeros(len(train))
    for number in range(4):
        held = fold == number
        inside[held] = make(given, train[~held], train[held])
    return inside, make(given, train, given.test)


def _movie_means(kept: pd.DataFrame, of: pd.DataFrame) -> Array:
    sums = kept.groupby("movie")["rest"].agg(["sum", "count"])
    means = sums["sum"] / (sums["count"] + 5)
    return np.asarray(of["movie"].map(means).fillna(0.0))


def _taste(given: Given, kept: pd.DataFrame, of: pd.DataFrame) -> Array:
    """Mean, over a movie's genres, of what the user gives such movies beyond their means."""
    genres = _genres(given)
    beyond = kept.assign(beyond=kept["rest"] - _movie_means(kept, kept))
    long = beyond.merge(genres, on="movie")
    taste = long.groupby(["user", "genre"])["beyond"].agg(["sum", "count"])
    taste = (taste["sum"] / (taste["count"] + 8)).rename("taste").reset_index()
    wanted = of[["user", "movie"]].reset_index(drop=True).reset_index().merge(genres, on="movie")
    found = wanted.merge(taste, on=["user", "genre"], how="left").fillna({"taste": 0.0})
    means = found.groupby("index")["taste"].mean()
    return np.asarray(means.reindex(range(len(of)), fill_value=0.0))


@lru_cache(maxsize=2)
def _genres(given: Given) -> pd.DataFrame:
    movies = given.tables["movies"]
    return movies.assign(genre=movies["genres"].str.split("|"))[["movie", "genre"]].explode("genre")


def _factored(
    given: Given, kept: pd.DataFrame, of: pd.DataFrame, size: int, penalty: float
) -> Array:
    """Users and movies as vectors, fitted in turns to what means leave over (ridge)."""
    rest = (kept["rest"] - _movie_means(kept, kept)).to_numpy()
    users, movies = (
        pd.Index(pd.concat([kept[name], of[name]]).unique()) for name in ("user", "movie")
    )
    rows = users.get_indexer(kept["user"]), movies.get_indexer(kept["movie"])
    rng = np.random.default_rng(0)
    sides = [rng.normal(0, 0.1, (len(users), size)), np.zeros((len(movies), size))]
    for turn in range(12):
        side = 1 - turn % 2
        sides[side] = _fitted(rows[side], sides[1 - side][rows[1 - side]], rest,
                              len(sides[side]), penalty)  # fmt: skip
    ours = sides[0][users.get_indexer(of["user"])]
    theirs = sides[1][movies.get_indexer(of["movie"])]
    return np.asarray((ours * theirs).sum(axis=1))


def _fitted(rows: Array, others: Array, rest: Array, number: int, penalty: float) -> Array:
    """Ridge regressions of many users (or movies) at once."""
    size = others.shape[1]
    squares = np.zeros((number, size, size))
    np.add.at(squares, rows, others[:, :, None] * others[:, None, :])
    products = np.zeros((number, size))
    np.add.at(products, rows, others * rest[:, None])
    return np.linalg.solve(squares + penalty * np.eye(size), products[:, :, None])[:, :, 0]


def _alike(given: Given, kept: pd.DataFrame, of: pd.DataFrame) -> Array:
    """What the user gave movies that are rated like this one, weighted by likeness."""
    from scipy import sparse

    users, movies = (
        pd.Index(pd.concat([kept[name], of[name]]).unique()) for name in ("user", "movie")
    )
    at = users.get_indexer(kept["user"]), movies.get_indexer(kept["movie"])
    rest = (kept["rest"] - _movie_means(kept, kept)).to_numpy()
    shape = (len(users), len(movies))
    given_by = sparse.csr_matrix((rest, at), shape)
    rated = sparse.csr_matrix((np.ones(len(rest)), at), shape)
    norms = np.sqrt(np.asarray(given_by.multiply(given_by).sum(axis=0)).ravel()) + 2.0
    scaled = given_by @ sparse.diags(1 / norms)
    likeness = (scaled.T @ scaled).tocsr()
    likeness.data = np.clip(likeness.data, 0, None)
    rows, columns = users.get_indexer(of["user"]), movies.get_indexer(of["movie"])
    total = np.asarray((given_by @ likeness)[rows, columns]).ravel()
    weight = np.asarray((rated @ likeness)[rows, columns]).ravel()
    return total / (weight + 0.5)
