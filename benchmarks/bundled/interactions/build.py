"""Generated: moisture of kiln-dried boards; cycles, ratios and effects that depend on each other.

    moisture = 30 + 5·sin(2π·(hour − 4)/24)
             + w·cos(wind_from − the way the kiln's gate faces), w = wind_speed / 2
             − 9·log2(heat / volume / 0.5) + 12·max(0, duct / fan − 1)
             + slope by species·(set_point − 60)/10 + 0.08·thickness·[set_point < 55]
             + normal noise of deviation 2

`clerk`, `pallets` and `forklift_hours` say nothing. The oracle knows all but the noise.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.building import Frames, random_split

ROWS, TEST_ROWS = 9_000, 4_000
TARGET, EXPECTED = "moisture", "expected"
FACING = {"north": 0, "east": 90, "south": 180, "west": 270}
SLOPES = {"beech": 4.0, "oak": -4.5, "pine": 1.5, "spruce": -1.0}


def build(root: Path, rng: np.random.Generator) -> Frames:
    boards = simulate(rng).drop(columns=EXPECTED)
    return Frames(*random_split(boards, TEST_ROWS, rng))


def simulate(rng: np.random.Generator) -> pd.DataFrame:
    """All boards, with the expected moisture beside the measured one."""
    boards = _conditions(rng)
    facing = np.array([FACING[gate] for gate in boards["gate"]])
    slope = np.array([SLOPES[species] for species in boards["species"]])
    boards[EXPECTED] = (
        30
        + 5 * np.sin(2 * np.pi * (boards["hour"] - 4) / 24)
        + boards["wind_speed"] / 2 * np.cos(np.pi / 180 * (boards["wind_from"] - facing))
        - 9 * np.log2(boards["heat"] / boards["volume"] / 0.5)
        + 12 * np.maximum(0, boards["duct"] / boards["fan"] - 1)
        + slope * (boards["set_point"] - 60) / 10
        + 0.08 * boards["thickness"] * (boards["set_point"] < 55)
    )
    boards[TARGET] = (boards[EXPECTED] + 2 * rng.standard_normal(ROWS)).round(2)
    return boards


def _conditions(rng: np.random.Generator) -> pd.DataFrame:
    def uniform(low: float, high: float, decimals: int) -> np.ndarray:
        return np.asarray((low + (high - low) * rng.random(ROWS)).round(decimals))

    def one_of(*names: str) -> np.ndarray:
        return np.array(names)[rng.integers(len(names), size=ROWS)]

    return pd.DataFrame(
        {
            "hour": uniform(0, 24, 1) % 24,
            "gate": one_of(*FACING),
            "wind_from": rng.integers(360, size=ROWS),
            "wind_speed": (18 * rng.random(ROWS) * rng.random(ROWS)).round(1),
            "species": one_of(*SLOPES),
            "thickness": uniform(18, 65, 0).astype(int),
            "set_point": uniform(45, 75, 1),
            "heat": uniform(20, 90, 1),
            "volume": uniform(40, 160, 1),
            "fan": uniform(4, 16, 2),
            "duct": uniform(4, 16, 2),
            "pallets": rng.integers(4, 40, size=ROWS),
            "clerk": one_of("ada", "ben", "cai", "dot", "eli", "fay"),
            "forklift_hours": uniform(100, 9_000, 0).astype(int),
        }
    )
