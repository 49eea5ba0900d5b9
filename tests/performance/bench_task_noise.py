"""How much a task's score moves when nothing gets better: the measure of its `min_delta`.

Prints mean and deviation of the public scores of a default boosting, fitted with five seeds
(half of the columns are tried at each split: else many fits are equal to the bit). Where it would
take minutes, on images, texts and many labels, a default forest stands for it.

    OMP_NUM_THREADS=1 python tests/performance/bench_task_noise.py [TASK…]
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any

from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer

from mle_ideator.benchmarks.bundled import bundled_folders
from mle_ideator.benchmarks.references import Given
from mle_ideator.benchmarks.references.computing import given_of, scores_of
from mle_ideator.benchmarks.references.encoding import Pair, as_given
from mle_ideator.benchmarks.references.models import Model, boosting
from mle_ideator.benchmarks.references.tabular import rung
from mle_ideator.errors import TaskError

SEEDS = range(5)


def letters(given: Given) -> Pair:
    """Of the first column, how often each letter and each usual pair of letters is in it."""
    import pandas as pd

    train, test = (frame.iloc[:, 0] for frame in as_given(given))
    counted = CountVectorizer(analyzer="char", ngram_range=(1, 2), min_df=50)
    seen, new = counted.fit_transform(train).toarray(), counted.transform(test).toarray()
    return pd.DataFrame(seen), pd.DataFrame(new)


FORESTS = {"mnist5k": as_given, "surname-origin": letters, "yeast": as_given}


def noise_of(task: str, folder: Path) -> tuple[float, float]:
    """Mean and standard deviation over the seeds."""
    models = [_model(task, seed) for seed in SEEDS]
    references = rung("weak", models, FORESTS.get(task, as_given))
    scores = [scored.public for scored in scores_of(references, *given_of(folder))]
    return statistics.mean(scores), statistics.stdev(scores)


def _model(task: str, seed: int) -> Model:
    def forest(wish: Any) -> Any:
        return RandomForestClassifier(100, random_state=seed)

    if task in FORESTS:
        return Model(f"forest {seed}", forest, suited=True)
    made = boosting(100, max_features=0.5, random_state=seed)
    return Model(f"boosting {seed}", made, suited=True)


def main(wanted: list[str]) -> None:
    for task, folder in bundled_folders().items():
        if wanted and task not in wanted:
            continue
        try:
            mean, deviation = noise_of(task, folder)
        except TaskError as error:
            print(f"{task:20} left out: {error}")
            continue
        print(f"{task:20} {mean:10.5f} ± {deviation:.5f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
