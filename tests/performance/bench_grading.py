"""How much the grader costs over the bare metric: reading and scoring a million predictions.

    python tests/performance/bench_grading.py [--rows 1000000] [--repeats 5]

*bare* is what a trusting script does: `pandas.read_csv` of the submission and one scikit-learn
call; rows are taken as they come, or if they are shuffled by `reindex`. *grader* reads the same
file, checks everything, aligns by id and scores both parts. The answers are in memory in both.
Best of the repeats, in seconds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, mean_absolute_error, roc_auc_score

from mle_ideator.benchmarks.grading import FileGrader


def best_of(repeats: int, action: Callable[[], object]) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def write_case(folder: Path, rows: int, shuffled: bool) -> tuple[np.ndarray, Path, Path]:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, rows)
    predicted = np.clip(0.3 + 0.4 * truth + rng.normal(0, 0.2, rows), 0.001, 0.999)
    part = np.where(rng.random(rows) < 0.5, "public", "private")
    answers, submission = folder / "answers.csv", folder / f"submission-{shuffled}.csv"
    pd.DataFrame({"id": range(rows), "y": truth, "part": part}).to_csv(answers, index=False)
    frame = pd.DataFrame({"id": range(rows), "y": predicted})
    if shuffled:
        frame = frame.sample(frac=1, random_state=0)
    frame.to_csv(submission, index=False)
    return truth, answers, submission


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    metrics = (
        ("log_loss", "probability", log_loss),
        ("auc", "probability", roc_auc_score),
        ("mae", "value", mean_absolute_error),
    )
    print(f"{options.rows:,} rows")
    print(f"{'metric':<10}{'order':<10}{'bare':>8}{'grader':>8}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as name:
        for shuffled in (False, True):
            truth, answers, submission = write_case(Path(name), options.rows, shuffled)
            for metric, prediction, bare in metrics:
                grader = FileGrader(
                    answers, metric=metric, id_column="id", targets=("y",), prediction=prediction
                )
                assert grader.grade(submission).valid  # also reads the answers, once

                def trusting(bare=bare, submission=submission, truth=truth, shuffled=shuffled):
                    predicted = pd.read_csv(submission, index_col="id")["y"]
                    return bare(
                        truth, predicted.reindex(range(len(truth))) if shuffled else predicted
                    )

                def ours(grader=grader, submission=submission):
                    return grader.grade(submission)

                a, b = best_of(options.repeats, trusting), best_of(options.repeats, ours)
                order = "shuffled" if shuffled else "as test"
                print(f"{metric:<10}{order:<10}{a:8.3f}{b:8.3f}{b / a:8.2f}")


if __name__ == "__main__":
    main()
