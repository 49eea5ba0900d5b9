"""statsmodels/datasets/randhie/randhie.csv: a row a person and year, persons one after the other.

The file has no number of the person. People took part for three or five years: a run of exactly so
many rows with the same plan and state of health is taken as one person, other runs are left out.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.building import Frames

NAMES = {
    "mdvis": "visits",
    "lncoins": "log_coinsurance",
    "idp": "individual_deductible",
    "lpi": "log_incentive",
    "fmde": "log_max_expenditure",
    "physlm": "physical_limitation",
    "disea": "chronic_diseases",
    "hlthg": "health_good",
    "hlthf": "health_fair",
    "hlthp": "health_poor",
}


def build(root: Path, rng: np.random.Generator) -> Frames:
    records = pd.read_csv(root / "datasets/randhie/randhie.csv").rename(columns=NAMES)
    fixed = records.drop(columns="visits")
    run = (fixed != fixed.shift()).any(axis=1).cumsum()
    length = run.groupby(run).transform("size")
    numbers = pd.Series(rng.permutation(run.max()), index=range(1, run.max() + 1))
    records.insert(0, "person", run.map(numbers))
    records.insert(1, "year", records.groupby(run).cumcount() + 1)
    records = records[length.isin([3, 5])]
    is_last = records["year"] == length[records.index]
    return Frames(records[~is_last], records[is_last])
