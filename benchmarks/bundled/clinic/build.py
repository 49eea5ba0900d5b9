"""Generated: patients of emergency wards; what was not measured tells something in some of them.

A patient's state gets worse with the log-odds

    −2.6 + 1.6·severity + 1.0·lungs + 0.9·heart + 0.3·(age − 60)/15

of three hidden normal quantities. Vital signs show severity dimly. Laboratory values show one of
the three well, but a doctor asks for them with the log-odds −0.7 + 2·(what they show) +
0.7·severity: in the wards `north`, `lake` and `old town` a missing value is good news. The wards
`airport` and `west` measure everything in a random 55 % of patients, nothing in others: there it
is no news. Values below what an apparatus can tell stand as `<0.5`. Ward `lake` gives creatinine
and CRP in mg/dl, others in µmol/l and mg/l. The oracle knows the three hidden quantities.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.building import Frames, random_split

ROWS, TEST_ROWS = 13_000, 6_500
TARGET, EXPECTED = "worse", "expected"
WARDS = ["airport", "lake", "north", "old town", "west"]
ROUTINE = ("airport", "west")
LABS = {
    # what it shows (severity, lungs, heart), middle and scale of its logarithm, least value told
    "crp": (0, 3.0, 1.1, 5.0),
    "lactate": (0, 0.4, 0.5, 0.5),
    "creatinine": (0, 4.4, 0.35, 20.0),
    "d_dimer": (1, -0.7, 0.9, 0.2),
    "co2": (1, 1.6, 0.2, 0.5),
    "troponin": (2, 2.3, 1.2, 5.0),
    "nt_probnp": (2, 5.5, 1.0, 50.0),
}
FACTORS = {"crp": 0.1, "creatinine": 1 / 88.4}
"""From the usual units to those of ward `lake`."""


def build(root: Path, rng: np.random.Generator) -> Frames:
    patients = simulate(rng).drop(columns=EXPECTED)
    return Frames(*random_split(patients, TEST_ROWS, rng))


def simulate(rng: np.random.Generator) -> pd.DataFrame:
    """All patients, with the probability that their state gets worse."""
    state = rng.standard_normal((3, ROWS))
    ward = np.array(WARDS)[rng.integers(len(WARDS), size=ROWS)]
    age = np.clip(60 + 17 * rng.standard_normal(ROWS), 18, 98).round(0)
    severity, lungs, heart = state
    odds = -2.6 + 1.6 * severity + 1.0 * lungs + 0.9 * heart + 0.3 * (age - 60) / 15
    worse = 1 / (1 + np.exp(-odds))
    columns = _vitals(rng, severity) | _labs(rng, state, ward)
    return pd.DataFrame(
        {
            "ward": ward,
            "age": age.astype(int),
            "sex": np.array(["f", "m"])[rng.integers(2, size=ROWS)],
            "arrival_hour": rng.integers(24, size=ROWS),
            **columns,
            EXPECTED: worse,
            TARGET: (rng.random(ROWS) < worse).astype(int),
        }
    )


def _vitals(rng: np.random.Generator, severity: np.ndarray) -> dict[str, np.ndarray]:
    def shown(middle: float, scale: float, share: float, decimals: int) -> np.ndarray:
        rest = (1 - share**2) ** 0.5 * rng.standard_normal(ROWS)
        return np.asarray((middle + scale * (share * severity + rest)).round(decimals))

    return {
        "pulse": shown(88, 16, 0.3, 0),
        "temperature": shown(37.3, 0.8, 0.25, 1),
        "systolic": shown(128, 20, -0.25, 0),
        "breaths": shown(19, 4, 0.3, 0),
    }


def _labs(rng: np.random.Generator, state: np.ndarray, ward: np.ndarray) -> dict[str, np.ndarray]:
    """By laboratory value the cells as text: a number, `<` and the least value told, or nothing."""
    routine, all_at_once = np.isin(ward, ROUTINE), rng.random(ROWS) < 0.55
    cells = {}
    for name, (shows, middle, scale, least) in LABS.items():
        wish = 1 / (1 + np.exp(0.7 - 2 * state[shows] - 0.7 * state[0]))
        measured = np.where(routine, all_at_once, rng.random(ROWS) < wish)
        value = np.exp(middle + scale * (0.85 * state[shows] + 0.53 * rng.standard_normal(ROWS)))
        factor = np.where(ward == "lake", FACTORS.get(name, 1.0), 1.0)
        told = np.where(
            value < least,
            [f"<{least * f:.3g}" for f in factor],
            [f"{v * f:.3g}" for v, f in zip(value, factor, strict=True)],
        )
        cells[name] = np.where(measured, told, "")
    return cells
