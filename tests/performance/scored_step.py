"""A scored step, of which a session has dozens: a script that imports, reads, fits, writes.

The fit is about 0.15 s of real work on an idle machine. The script says itself how long its
imports and its work took, so that the rest is what running it costs.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

SOLUTION = """\
import time

started = time.perf_counter()
import lightgbm as lgb
import numpy as np
import pandas as pd
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import KFold

imported = time.perf_counter()
train, test = pd.read_csv("input/train.csv"), pd.read_csv("input/test.csv")
features = [name for name in train if name.startswith("x")]
scores, predictions = [], np.zeros(len(test))
for fit, held in KFold(3, shuffle=True, random_state=0).split(train):
    model = lgb.LGBMRegressor(n_estimators=45, num_leaves=15, verbose=-1, random_state=0)
    model.fit(train[features].iloc[fit], train["y"].iloc[fit])
    guess = model.predict(train[features].iloc[held])
    scores.append(mean_squared_error(train["y"].iloc[held], guess) ** 0.5)
    predictions += model.predict(test[features]) / 3
pd.DataFrame({"id": test["id"], "y": predictions}).to_csv("submission.csv", index=False)
print(f"Validation score: {np.mean(scores):.6f}")
print(f"seconds: {imported - started:.4f} {time.perf_counter() - imported:.4f}")
"""
TRAIN_ROWS, TEST_ROWS, FEATURES = 1500, 500, 12


@dataclass(frozen=True)
class Run:
    """One scored step, in seconds: as its caller saw it, and of that its imports and its work."""

    seconds: float
    imports: float
    work: float


def write_inputs(folder: Path) -> None:
    """`train.csv` and `test.csv`, always the same."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = random.Random(0)
    names = [f"x{i}" for i in range(FEATURES)]
    for name, rows, header in (
        ("train.csv", TRAIN_ROWS, ["id", *names, "y"]),
        ("test.csv", TEST_ROWS, ["id", *names]),
    ):
        lines = [",".join(header)]
        for row in range(rows):
            x = [round(numbers.gauss(0, 1), 5) for _ in names]
            y = [round(2 * x[0] + x[1] * x[2] + numbers.gauss(0, 0.3), 5)] if "y" in header else []
            lines.append(",".join(map(str, [row, *x, *y])))
        (folder / name).write_text("\n".join(lines) + "\n")


def finished(workspace: Path, seconds: float, text: str) -> Run:
    """The run, once it is certain that it did its work. Ends the program if it did not."""
    submission = workspace / "submission.csv"
    if "Validation score: " not in text or not submission.is_file():
        raise SystemExit(f"the step came to nothing. It wrote: {text}")
    submission.unlink()
    imports, work = text.partition("seconds: ")[2].split()[:2]
    return Run(seconds, float(imports), float(work))
