"""Generated: a pump watched minute by minute; regimes, and few faults that hide in the ranges.

Each run of the pump is `MINUTES` long and goes through programs of 20 to 60 minutes. In a program,
eight gauges are linear in three hidden quantities (load, heat, wear) that wander slowly, with a
little curvature, and noise of deviation 0.25. Coefficients differ by program: what is usual in one
is not in another. In 45 % of runs there is one fault of 6 to 18 minutes, of one of three kinds:

    drift   one gauge is off by 1.2 to 2.0, either way: well within its range
    stuck   one gauge repeats its value, but for a little noise
    loose   the noise of two gauges is threefold

In each of them `vibration` is up by 0.9, too.

A good score comes from the gauges' errors about what the others and the program predict, taken over
some minutes. There is no closed form of the ceiling.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.building import Frames

RUNS, TEST_RUNS, MINUTES, PROGRAMS = 126, 60, 120, 5
GAUGES = ["current", "flow", "inlet_pressure", "inlet_temperature", "outlet_pressure"]
GAUGES += ["outlet_temperature", "speed", "vibration"]
HIDDEN, NOISE, FAULTY_RUNS = 3, 0.25, 0.45
SCALES = np.array([3.0, 8.0, 0.4, 5.0, 0.9, 6.0, 120.0, 0.2])
MIDDLES = np.array([24.0, 60.0, 2.1, 35.0, 6.3, 52.0, 1480.0, 1.1])
TARGET = "fault"


def build(root: Path, rng: np.random.Generator) -> Frames:
    slopes = rng.standard_normal((PROGRAMS, HIDDEN, len(GAUGES)))
    curves = 0.15 * rng.standard_normal((PROGRAMS, HIDDEN, len(GAUGES)))
    levels = 0.5 * rng.standard_normal((PROGRAMS, len(GAUGES)))
    codes = [f"R{number:03d}" for number in rng.permutation(1_000)[:RUNS]]
    runs = [_run(rng, code, slopes, curves, levels) for code in codes]
    return Frames(pd.concat(runs[TEST_RUNS:]), pd.concat(runs[:TEST_RUNS]))


def _run(
    rng: np.random.Generator,
    code: str,
    slopes: np.ndarray,
    curves: np.ndarray,
    levels: np.ndarray,
) -> pd.DataFrame:
    program = np.repeat(rng.integers(PROGRAMS, size=6), rng.integers(20, 61, size=6))[:MINUTES]
    hidden = _wandering(rng)[:, :, None]
    noise = NOISE * rng.standard_normal((MINUTES, len(GAUGES)))
    usual = (hidden * slopes[program] + hidden**2 * curves[program]).sum(axis=1) + levels[program]
    fault = np.zeros(MINUTES, dtype=int)
    if rng.random() < FAULTY_RUNS:
        start, length = rng.integers(5, MINUTES - 20), rng.integers(6, 19)
        spell = slice(start, start + length)
        fault[spell] = 1
        _break(rng, usual, noise, spell)
    read = pd.DataFrame(MIDDLES + SCALES * (usual + noise), columns=GAUGES).round(3)
    read.insert(0, "run", code)
    read.insert(1, "minute", np.arange(MINUTES))
    read.insert(2, "program", np.array(list("ABCDE"))[program])
    return read.assign(**{TARGET: fault})


def _wandering(rng: np.random.Generator) -> np.ndarray:
    """Hidden quantities by minute: about normal, each minute close to the one before."""
    values = np.empty((MINUTES, HIDDEN))
    values[0] = rng.standard_normal(HIDDEN)
    for minute in range(1, MINUTES):
        values[minute] = 0.97 * values[minute - 1] + 0.243 * rng.standard_normal(HIDDEN)
    return values


def _break(rng: np.random.Generator, usual: np.ndarray, noise: np.ndarray, spell: slice) -> None:
    one, other = rng.permutation(len(GAUGES))[:2]
    usual[spell, GAUGES.index("vibration")] += 0.9
    kind = ("drift", "stuck", "loose")[rng.integers(3)]
    if kind == "drift":
        usual[spell, one] += (1.2 + 0.8 * rng.random()) * (1 if rng.random() < 0.5 else -1)
    elif kind == "stuck":
        usual[spell, one] = usual[spell.start, one]
        noise[spell, one] *= 0.1
    else:
        noise[spell, [one, other]] *= 3
