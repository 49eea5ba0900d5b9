"""Ratios and cycles as columns; then the wind as the gate meets it, and slopes by species."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.references import Given, Reference
from mle_ideator.benchmarks.references.encoding import Pair, as_given
from mle_ideator.benchmarks.references.tabular import ladder

FACING = {"north": 0, "east": 90, "south": 180, "west": 270}


def references() -> Iterator[Reference]:
    return ladder(features, full)


def features(given: Given) -> Pair:
    train, test = as_given(given)
    return _with_ratios(train), _with_ratios(test)


def full(given: Given) -> Pair:
    train, test = features(given)
    return _with_products(train), _with_products(test)


def _with_ratios(boards: pd.DataFrame) -> pd.DataFrame:
    angle = 2 * np.pi * boards["hour"] / 24
    return boards.assign(
        power=np.log(boards["heat"] / boards["volume"]),
        air=boards["duct"] / boards["fan"],
        hour_sine=np.sin(angle),
        hour_cosine=np.cos(angle),
        wind_north=boards["wind_speed"] * np.cos(np.pi / 180 * boards["wind_from"]),
        wind_east=boards["wind_speed"] * np.sin(np.pi / 180 * boards["wind_from"]),
    )


def _with_products(boards: pd.DataFrame) -> pd.DataFrame:
    facing = boards["gate"].map(FACING).astype(float)
    towards = np.cos(np.pi / 180 * (boards["wind_from"] - facing))
    degrees = boards["set_point"] - boards["set_point"].median()
    by_species = {
        f"set point of {species}": degrees * (boards["species"] == species)
        for species in sorted(boards["species"].unique())
    }
    useless = ["clerk", "pallets", "forklift_hours"]
    return boards.drop(columns=useless).assign(
        wind_at_gate=boards["wind_speed"] * towards,
        excess=np.maximum(0, boards["air"] - 1),
        cold_thickness=boards["thickness"] * (boards["set_point"] < 55),
        **by_species,
    )
