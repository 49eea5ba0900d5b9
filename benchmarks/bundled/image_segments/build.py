"""river/datasets/segment.csv.zip: 18 numbers and the category."""

from pathlib import Path

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.building import Frames, random_split


def build(root: Path, rng: np.random.Generator) -> Frames:
    regions = pd.read_csv(root / "datasets/segment.csv.zip").drop_duplicates()
    return Frames(*random_split(regions, 836, rng, by="category"))
