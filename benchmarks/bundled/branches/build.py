"""Generated: loans of a bank's branches; test has other branches, and a column knows the outcome.

Branches differ in level: income, rent and the amounts asked for are a factor of the branch's town,
and what matters is where a person stands within the town. A loan goes bad with the log-odds

    −1.6 − 1.3·(income within the town) + 1.1·(amount within the town) − 0.9·(score − the branch's
    mean score)/60 + 0.7·[temporary job] + 0.5·[amount > 6 monthly incomes] + branch (deviation 0.3)

where scores were given by the branches, each with its own habit. `reminders` counts letters sent:
in train.csv until the loan ended, mostly to those that went bad; in test.csv until the day of
signing, so it says nothing. The oracle knows all terms, those of the branch too.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.building import Frames

BRANCHES, TEST_BRANCHES, LOANS = 90, 30, 120
TARGET, EXPECTED = "bad", "expected"
JOBS = ["civil servant", "employed", "self-employed", "temporary"]
PURPOSES = ["car", "debts", "furniture", "house", "other", "studies"]


def build(root: Path, rng: np.random.Generator) -> Frames:
    loans = simulate(rng).drop(columns=EXPECTED)
    names = np.array(loans["branch"].unique())[rng.permutation(BRANCHES)]
    in_test = loans["branch"].isin(names[:TEST_BRANCHES])
    train, test = loans[~in_test].copy(), loans[in_test].copy()
    train["reminders"] = _sent(rng, 0.1 + 1.9 * train[TARGET].to_numpy())
    test["reminders"] = _sent(rng, np.full(len(test), 0.1))
    columns = [*loans.columns.drop(TARGET), "reminders", TARGET]
    return Frames(train[columns], test[columns])


def _sent(rng: np.random.Generator, expected: np.ndarray) -> np.ndarray:
    return rng.poisson(expected)


def simulate(rng: np.random.Generator) -> pd.DataFrame:
    """All loans but for the letters, with the probability to go bad."""
    count = BRANCHES * LOANS
    branch = np.repeat(np.arange(BRANCHES), LOANS)
    town = 0.6 * rng.standard_normal(BRANCHES)
    habit = 70 * rng.standard_normal(BRANCHES)
    risk = 0.3 * rng.standard_normal(BRANCHES)
    income, asked, worth = (rng.standard_normal(count) for _ in range(3))
    job = np.searchsorted([0.12, 0.65, 0.8], rng.random(count))
    monthly = np.exp(7.6 + town[branch] + 0.4 * income)
    amount = np.exp(8.9 + town[branch] + 0.55 * asked)
    odds = (
        -1.9
        - 1.1 * income
        + 0.9 * asked
        - 0.9 * worth
        + 0.7 * (job == 3)
        + 0.5 * (amount > 6 * monthly)
        + risk[branch]
    )
    codes = np.array([f"B{number:03d}" for number in rng.permutation(900)[:BRANCHES]])
    bad = 1 / (1 + np.exp(-odds))
    return pd.DataFrame(
        {
            "branch": codes[branch],
            "age": (19 + 50 * rng.random(count)).astype(int),
            "job": np.array(JOBS)[job],
            "purpose": np.array(PURPOSES)[rng.integers(len(PURPOSES), size=count)],
            "income": monthly.round(0).astype(int),
            "rent": (0.3 * np.exp(7.6 + town[branch] + 0.3 * rng.standard_normal(count))).round(0),
            "amount": (amount / 100).round(0) * 100,
            "months": 12 * rng.integers(1, 8, size=count),
            "score": (560 + habit[branch] + 60 * worth).round(0).astype(int),
            EXPECTED: bad,
            TARGET: (rng.random(count) < bad).astype(int),
        }
    )
