"""river/datasets/yeast.csv.gz: 103 numbers (Att1 …) and 14 labels (Class1 …), a row a gene."""

from pathlib import Path

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.building import Frames, random_split


def build(root: Path, rng: np.random.Generator) -> Frames:
    genes = pd.read_csv(root / "datasets/yeast.csv.gz").rename(columns=_renamed)
    measured = [name for name in genes.columns if name.startswith("x")]
    return Frames(*random_split(genes.drop_duplicates(measured), 917, rng))


def _renamed(name: str) -> str:
    return name.replace("Att", "x").replace("Class", "function_")
