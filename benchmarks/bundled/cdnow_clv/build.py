"""lifetimes/datasets/CDNOW_master.txt: a row a purchase: customer, date, number of CDs, dollars."""

from pathlib import Path

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.building import Frames, random_split

KNOWN_UNTIL = pd.Timestamp("1997-09-30")


def build(root: Path, rng: np.random.Generator) -> Frames:
    path = root / "datasets/CDNOW_master.txt"
    names = ["customer", "date", "cds", "dollars"]
    bought = pd.read_csv(path, sep=r"\s+", skiprows=1, names=names)
    bought["date"] = pd.to_datetime(bought["date"].astype(str), format="%Y%m%d")
    numbers = rng.permutation(bought["customer"].max() + 1)
    bought["customer"] = numbers[bought["customer"]]
    past = bought[bought["date"] <= KNOWN_UNTIL]
    later = bought[bought["date"] > KNOWN_UNTIL].groupby("customer")["dollars"].sum()
    customers = _summary(past).sort_index()
    customers["spend"] = later.reindex(customers.index, fill_value=0.0).round(2)
    train, test = random_split(customers.reset_index(), 9_400, rng)
    past = past.sort_values(names).assign(date=past["date"].dt.strftime("%Y-%m-%d"))
    return Frames(train, test, {"purchases": past})


def _summary(past: pd.DataFrame) -> pd.DataFrame:
    customers = past.groupby("customer").agg(
        purchases=("date", "size"),
        first=("date", "min"),
        last=("date", "max"),
        cds=("cds", "sum"),
        dollars=("dollars", "sum"),
    )
    return pd.DataFrame(
        {
            "purchases": customers["purchases"],
            "days_since_first": (KNOWN_UNTIL - customers["first"]).dt.days,
            "days_since_last": (KNOWN_UNTIL - customers["last"]).dt.days,
            "cds": customers["cds"],
            "dollars": customers["dollars"].round(2),
        }
    )
