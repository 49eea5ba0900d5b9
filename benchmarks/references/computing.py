"""Run a task's references, grade them as submissions are graded, write its leaderboard."""

from __future__ import annotations

import csv
import io
import tempfile
import time
import warnings
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mle_ideator.benchmarks.building import SAMPLE, TEST, TRAIN
from mle_ideator.benchmarks.declared.boards import COLUMNS, LEADERBOARD
from mle_ideator.benchmarks.declared.spec import Spec, read_spec
from mle_ideator.benchmarks.references.values import Given, Reference, Rung
from mle_ideator.errors import TaskError, unknown
from mle_ideator.files import replace_file

if TYPE_CHECKING:
    import pandas as pd

    from mle_ideator.protocols import Grader

REFERENCES = "references.py"


@dataclass(frozen=True)
class Scored:
    """One reference and what it scores."""

    name: str
    rung: Rung
    public: float
    private: float
    seconds: float
    """Of processor time."""


def references_of(folder: Path) -> list[Reference]:
    """What a task folder's `references.py` gives. Raises `TaskError`."""
    file = folder.resolve() / REFERENCES
    if not file.is_file():
        raise TaskError(f"{file} does not exist: it would give the task's reference solutions")
    made = getattr(_module(file, file.stat().st_mtime_ns), "references", None)
    if not callable(made):
        raise TaskError(f"{file} has no function references()")
    found: list[Reference] = list(made())
    names = [reference.name for reference in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise TaskError(f"{file} has more than one reference {twice[0]!r}")
    return found


@cache  # executed once, so that what its functions have made is found again
def _module(file: Path, changed: int) -> Any:
    found = spec_from_file_location(f"_references_{file.parent.name}", file)
    assert found is not None and found.loader is not None  # noqa: S101, PT018 - a .py file has one
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return module


def given_of(folder: Path) -> tuple[Given, Grader]:
    """What agents see of the task in a folder, built if need be, and its grader."""
    from mle_ideator.benchmarks.declared.assembling import load

    task, grader = load(folder)
    return given_in(Path(task.inputs), read_spec(folder)), grader


def given_in(public: Path, spec: Spec) -> Given:
    """What agents see in the public folder of a built task."""
    import pandas as pd

    as_text = {} if spec.prediction == "value" else dict.fromkeys(spec.targets, str)
    read: dict[str, pd.DataFrame] = {
        path.stem: pd.read_csv(path, low_memory=False)
        for path in sorted(public.glob("*.csv"))
        if path.name not in (TRAIN, TEST, SAMPLE)
    }
    train = pd.read_csv(public / TRAIN, low_memory=False)
    if as_text:  # a class may be called NA
        classes = pd.read_csv(public / TRAIN, dtype=str, keep_default_na=False, usecols=[*as_text])
        train = train.assign(**{name: classes[name] for name in as_text})
    test = pd.read_csv(public / TEST, low_memory=False)
    return Given(spec, train, test, pd.read_csv(public / SAMPLE), read)


def compute(folder: Path, only: Collection[str] = ()) -> Iterator[Scored]:
    """Run the references of a task one by one, on one core; all, or those named.

    Raises `TaskError` for an unknown name, or a reference whose submission is refused.
    """
    references = references_of(folder)
    known = [reference.name for reference in references]
    for name in only:
        if name not in known:
            raise TaskError(unknown("reference", name, known))
    chosen = [one for one in references if not only or one.name in only]
    return scores_of(chosen, *given_of(folder))


def scores_of(references: Iterable[Reference], given: Given, grader: Grader) -> Iterator[Scored]:
    """Run references and grade them. Raises `TaskError` where a submission is refused."""
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    for reference in references:
        start = time.process_time()
        with threadpool_limits(1), warnings.catch_warnings():  # sums in one order, anywhere
            warnings.simplefilter("ignore", ConvergenceWarning)  # to stop early is no fault
            predicted = reference.predict(given)
        public, private = _scores(reference, as_submission(given, predicted), grader)
        taken = time.process_time() - start
        yield Scored(reference.name, reference.rung, public, private, taken)


def as_submission(given: Given, predicted: Any) -> pd.DataFrame:
    """A reference's predictions with the ids of the test rows."""
    import pandas as pd

    if isinstance(predicted, pd.DataFrame):
        return predicted
    names = given.spec.columns
    if not isinstance(predicted, dict):
        columns = predicted.T if getattr(predicted, "ndim", 1) > 1 else [predicted]
        predicted = dict(zip(names, columns, strict=True))
    ids = given.test[given.spec.id_column].to_numpy()
    return pd.DataFrame({given.spec.id_column: ids, **{name: predicted[name] for name in names}})


def _scores(reference: Reference, submission: pd.DataFrame, grader: Grader) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "submission.csv"
        submission.to_csv(path, index=False)
        grade = grader.grade(path)
    if not grade.valid:
        raise TaskError(f"reference {reference.name!r}: {grade.problems[0].message}")
    if grade.public is None or grade.private is None:
        why = "; ".join(remark.message for remark in grade.remarks)
        raise TaskError(f"reference {reference.name!r} has no score: {why}")
    return grade.public.value, grade.private.value


def write_leaderboard(folder: Path, scored: Collection[Scored]) -> None:
    """Write `leaderboard.csv`, the best private score first."""
    higher = read_spec(folder).higher_is_better
    in_order = sorted(scored, key=lambda one: (-one.private if higher else one.private, one.name))
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    rows.writerows((one.name, f"{one.public:.7g}", f"{one.private:.7g}") for one in in_order)
    replace_file(folder / LEADERBOARD, text.getvalue().encode())
