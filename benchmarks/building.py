"""From frames to a task's files: the same few steps for bundled tasks and a person's own data.

A built folder holds

    public/   train.csv, test.csv, sample_submission.csv and side tables: all that agents may see
    private/  answers.csv: id, targets, event or group, part (`public`, `private`, or `ignore`);
              mode 0700
    built.json  hash of the files, scores of the trivial solution

Rows are shuffled and ids are the positions after that, so neither order nor id says anything.
The sample submission *is* the trivial solution: the best constant that train.csv suggests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mle_ideator.benchmarks.trivial import trivial_predictions

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

PUBLIC, PRIVATE, ANSWERS = "public", "private", "answers.csv"
TRAIN, TEST, SAMPLE = "train.csv", "test.csv", "sample_submission.csv"
PART = "part"


@dataclass(frozen=True)
class Frames:
    """What a task is made of: both frames with their targets, and tables shipped beside them."""

    train: pd.DataFrame
    test: pd.DataFrame
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    """Side tables by file name without `.csv`."""


def random_split(
    frame: pd.DataFrame, test_rows: int, rng: np.random.Generator, by: str | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two disjoint parts, the second of `test_rows` rows, with the shares of column `by` kept."""
    order = frame.iloc[rng.permutation(len(frame))]
    if by is None:
        return order.iloc[test_rows:], order.iloc[:test_rows]
    # Rank within its level, scaled: every level comes evenly spread when sorted by it.
    place = (order.groupby(by).cumcount() + 0.5) / order.groupby(by)[by].transform("size")
    order = order.loc[place.sort_values(kind="stable").index]
    return order.iloc[test_rows:], order.iloc[:test_rows]


def shuffled_and_numbered(
    frames: Frames, id_column: str, rng: np.random.Generator
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both frames in random order, with ids that count through from train to test."""
    train = frames.train.iloc[rng.permutation(len(frames.train))]
    test = frames.test.iloc[rng.permutation(len(frames.test))]
    return numbered(train, id_column), numbered(test, id_column, first=len(train))


def numbered(frame: pd.DataFrame, id_column: str, first: int = 0) -> pd.DataFrame:
    """With a first column that counts the rows as they stand."""
    import pandas as pd

    ids = pd.Series(range(first, first + len(frame)), name=id_column)
    joined = pd.concat([ids, frame.reset_index(drop=True)], axis=1)
    return joined.copy()  # in one piece again


def halves(test: pd.DataFrame, rng: np.random.Generator, blocks: str | None = None) -> list[str]:
    """`public` or `private` for each row, half and half; equal values of `blocks` get the same."""
    members = range(len(test)) if blocks is None else test[blocks].tolist()
    levels = sorted(set(members))
    order = rng.permutation(len(levels))
    half = {level: place < len(levels) // 2 for level, place in zip(levels, order, strict=True)}
    return [PUBLIC if half[level] else PRIVATE for level in members]


def write_files(
    folder: Path,
    train: pd.DataFrame,
    test: pd.DataFrame,
    part: Sequence[str],
    sample: pd.DataFrame,
    *,
    targets: Sequence[str],
    id_column: str,
    tables: dict[str, pd.DataFrame] | None = None,
    event: str | None = None,
    group: str | None = None,
) -> None:
    """Write the public and private files. `test` has the targets, `part` the part of its rows.

    A column `event` is hidden with the targets; `group` is shown, and kept with the answers too.
    """
    public, private = folder / PUBLIC, folder / PRIVATE
    public.mkdir(parents=True)
    private.mkdir(mode=0o700)
    write_csv(train, public / TRAIN)
    hidden = [*targets, *([event] if event else [])]
    write_csv(test.drop(columns=hidden), public / TEST)
    write_csv(sample, public / SAMPLE)
    for name, table in (tables or {}).items():
        write_csv(table, public / f"{name}.csv")
    answers = test[[id_column, *hidden, *([group] if group else [])]].assign(**{PART: part})
    write_csv(answers, private / ANSWERS)


def sample_submission(
    train: pd.DataFrame,
    ids: pd.Series[int],
    *,
    targets: Sequence[str],
    metric: str,
    prediction: str,
    classes: Sequence[str] = (),
) -> pd.DataFrame:
    """The trivial solution: one constant a prediction column, learnt from `train`."""
    import pandas as pd

    constants = trivial_predictions(train[list(targets)], metric, prediction, classes)
    return pd.DataFrame({str(ids.name): ids.to_numpy(), **constants})


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """Read-only UTF-8 with the shortest digits that matter, equal under every pandas version."""
    frame.to_csv(path, index=False, float_format="%.10g", lineterminator="\n")
    path.chmod(0o444)


def digest(folder: Path) -> str:
    """SHA-256 over names and bytes of all files of a built folder's public and private parts."""
    total = hashlib.sha256()
    for path in sorted([*(folder / PUBLIC).iterdir(), *(folder / PRIVATE).iterdir()]):
        total.update(f"{path.parent.name}/{path.name}\n".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()
