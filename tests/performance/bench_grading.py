"""What grading costs over the bare metric: a million predictions, read, checked and scored.

    python tests/performance/bench_grading.py [--rows 1000000] [--rounds 9] [--most 1.5]

Three ways to grade one file, each against what a trusting script does in pandas and scikit-learn:

    again   the answers are in memory (as in a session, which grades many times); the script reads
            the submission and calls the metric
    once    both read the answers too, and the script puts the rows in order by id
    call    the script's call of the metric alone, on arrays that it has already, beside the
            grader's reading and scoring

*grader* is `FileGrader.grade` in all: it reads the file, checks everything, aligns by id, and
scores both parts. Each round runs all of them in turn, so that what else the machine does hits all
alike; the medians are shown, in seconds, and the median of the rounds' ratios. On a busy machine
`--clock cpu` tells more: seconds of the processor, all threads together. With --most it fails if
`again` or `once` of log loss or AUC is above that.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, mean_absolute_error, roc_auc_score

from mle_ideator.benchmarks.grading import FileGrader, metric_named

METRICS = {"log_loss": log_loss, "auc": roc_auc_score, "mae": mean_absolute_error}
HELD_TO = ("log_loss", "auc")


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


def contenders(
    metric: str, truth: np.ndarray, answers: Path, submission: Path, shuffled: bool
) -> dict[str, Callable[[], object]]:
    """What is timed, by name."""
    bare = METRICS[metric]

    def fresh() -> FileGrader:
        prediction = metric_named(metric).prediction
        return FileGrader(
            answers, metric=metric, id_column="id", targets=("y",), prediction=prediction
        )

    def predictions() -> pd.Series:
        read = pd.read_csv(submission, index_col="id")["y"]
        return read.reindex(range(len(truth))) if shuffled else read

    def script_once() -> float:
        known = pd.read_csv(answers, index_col="id")["y"]
        return bare(known, pd.read_csv(submission, index_col="id")["y"].reindex(known.index))

    ready, warm = predictions().to_numpy(), fresh()
    assert warm.grade(submission).valid  # also reads the answers
    return {
        "grader again": lambda: warm.grade(submission),
        "script again": lambda: bare(truth, predictions()),
        "grader once": lambda: fresh().grade(submission),
        "script once": script_once,
        "script call": lambda: bare(truth, ready),
    }


CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def timed(
    actions: dict[str, Callable[[], object]], rounds: int, clock: Callable[[], float]
) -> list[dict[str, float]]:
    times = []
    for _ in range(rounds):
        each = {}
        for name, action in actions.items():
            start = clock()
            action()
            each[name] = clock() - start
        times.append(each)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--most", type=float, help="fail if a ratio is above this")
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    options = parser.parse_args()
    print(f"{options.rows:,} rows, medians of {options.rounds} rounds, {options.clock} seconds")
    print(f"{'metric':<10}{'order':<10}{'':<7}{'script':>8}{'grader':>8}{'ratio':>8}")
    above = []
    with tempfile.TemporaryDirectory() as name:
        for shuffled in (False, True):
            case = write_case(Path(name), options.rows, shuffled)
            for metric in METRICS:
                actions = contenders(metric, *case, shuffled)
                rounds = timed(actions, options.rounds, CLOCKS[options.clock])
                for way in ("again", "once", "call"):
                    ours = "grader again" if way == "call" else f"grader {way}"
                    script, grader = (
                        median(each[n] for each in rounds) for n in (f"script {way}", ours)
                    )
                    ratio = median(each[ours] / each[f"script {way}"] for each in rounds)
                    order = "shuffled" if shuffled else "as test"
                    print(f"{metric:<10}{order:<10}{way:<7}{script:8.3f}{grader:8.3f}{ratio:8.2f}")
                    if metric in HELD_TO and way != "call" and ratio > (options.most or np.inf):
                        above.append(f"{metric} {order} {way}: {ratio:.2f}")
    if above:
        sys.exit(f"above {options.most}: {'; '.join(above)}")


if __name__ == "__main__":
    main()
