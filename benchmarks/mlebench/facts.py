"""What a task has to know of a competition, told by its public files."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from mle_ideator.benchmarks.grading.cells import in_order
from mle_ideator.benchmarks.mlebench.competitions import Competition
from mle_ideator.benchmarks.mlebench.declaring import known_metric
from mle_ideator.benchmarks.mlebench.form import Form
from mle_ideator.types import Value

TRAIN, TEST = "train.csv", "test.csv"
_LARGEST_READ = 512 * 2**20
"""Bytes. Of a larger train.csv only the lines are counted."""
_MOST_CLASSES = 100
_ROWS_OF_TEXT = 200
_WORDS_OF_A_TEXT = 4


class Facts(Value, frozen=True, kw_only=True):
    """Beside the metric."""

    id_column: str
    targets: tuple[str, ...]
    prediction: Literal["value", "label", "probability"]
    classes: tuple[str, ...]
    rows: tuple[int, int]
    type: str


@dataclass(frozen=True)
class _Train:
    """What train.csv tells; nothing where there is none, or it is too large to be read."""

    rows: int = 0
    columns: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    """Of the one target column, if they are few."""


def facts_of(competition: Competition, form: Form) -> Facts:
    """Reads train.csv once, so this may take seconds."""
    own, targets = competition.own, form.columns
    prediction = own.prediction or _prediction(competition, form)
    train = _train(competition.public / TRAIN, targets)
    if own.classes is not None:
        classes = own.classes
    elif prediction == "probability" and len(targets) > 1:
        # Columns that train.csv has as well are labels of their own, others are one's classes.
        classes = () if set(targets) <= set(train.columns) else targets
    else:
        classes = () if prediction == "value" else train.values
    return Facts(
        id_column=form.id_column,
        targets=targets,
        prediction=prediction,
        classes=classes,
        rows=(train.rows, len(form.ids)),
        type=own.type or _type(competition.public, prediction, form.id_column),
    )


def _prediction(competition: Competition, form: Form) -> Literal["value", "label", "probability"]:
    spec = known_metric(competition)
    if spec is not None:
        return spec.prediction
    return "value" if form.numeric.issuperset(form.columns) else "label"


def _train(file: Path, targets: tuple[str, ...]) -> _Train:
    if not file.is_file():
        return _Train()
    with file.open("rb") as lines:
        if file.stat().st_size > _LARGEST_READ:
            return _Train(rows=sum(1 for _ in lines) - 1)
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            return _counted(csv.reader(lines), targets)
    except (UnicodeDecodeError, csv.Error):
        return _Train(rows=file.read_bytes().count(b"\n") - 1)


def _counted(rows: Iterable[list[str]], targets: tuple[str, ...]) -> _Train:
    source = iter(rows)
    columns = tuple(next(source, ()))
    place = columns.index(targets[0]) if len(targets) == 1 and targets[0] in columns else None
    values: Counter[str] = Counter()
    number = 0
    for number, row in enumerate(source, 1):  # noqa: B007 - how many there are is wanted
        if place is not None and place < len(row) and len(values) <= _MOST_CLASSES:
            values[row[place]] += 1
    few = in_order(values) if 0 < len(values) <= _MOST_CLASSES else []
    return _Train(number, columns, tuple(few))


def _type(public: Path, prediction: str, id_column: str) -> str:
    what = "regression" if prediction == "value" else "classification"
    folders = any(path.is_dir() for path in public.iterdir())
    if folders or not ((public / TRAIN).is_file() and (public / TEST).is_file()):
        return f"files-{what}"
    return f"{'text' if _has_text(public / TEST, id_column) else 'tabular'}-{what}"


def _has_text(file: Path, id_column: str) -> bool:
    """Does a column hold sentences?"""
    with file.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
        rows = list(islice(csv.DictReader(lines), _ROWS_OF_TEXT))
    names = [name for name in (rows[0] if rows else {}) if name and name != id_column]
    return any(_words(row.get(name) or "" for row in rows) >= _WORDS_OF_A_TEXT for name in names)


def _words(cells: Iterable[str]) -> float:
    filled = [len(cell.split()) for cell in cells if cell.strip()]
    return sum(filled) / len(filled) if filled else 0.0
