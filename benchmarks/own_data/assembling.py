"""From a person's files to a task's folder."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mle_ideator.benchmarks import building
from mle_ideator.benchmarks.grading import FileGrader
from mle_ideator.benchmarks.grading.wording import count
from mle_ideator.benchmarks.own_data import ORDER, REMARKS, WHOLE
from mle_ideator.benchmarks.own_data.describing import describe, task_type
from mle_ideator.benchmarks.own_data.holdout import draw, pooled, repeats_of, strata_of
from mle_ideator.benchmarks.own_data.identity import Identity, free_name, identity_of
from mle_ideator.benchmarks.own_data.reading import Table, blank, read_table
from mle_ideator.benchmarks.own_data.target import Target, numbers_in, understand
from mle_ideator.config import OwnData
from mle_ideator.errors import GradingError, TaskError, unknown
from mle_ideator.protocols import Grader
from mle_ideator.types import Scores, Task

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

LEAST_ROWS, LEAST_HELD_OUT = 20, 4
IGNORE = "ignore"


@dataclass(frozen=True)
class Parts:
    """The rows as agents get them, but for the target in `test`, which they do not get."""

    train: pd.DataFrame
    test: pd.DataFrame
    part: list[str]
    """Of each test row."""
    id_column: str
    order: pd.DataFrame | None
    """The task's ids of the person's test rows, and their own ids or row numbers."""


def assemble(own: OwnData, folder: Path, seed: int) -> tuple[Task, Grader]:
    """The task made of `own` in `folder`; see `load_own_data`."""
    import numpy as np

    if not 0.0 < own.holdout < 0.9:
        raise TaskError(f"the hold-out must be above 0 and below 0.9, not {own.holdout:g}.")
    train, test = _tables(own)
    remarks = [*train.remarks, *(test.remarks if test else [])]
    labelled = _labelled(train, own.target, remarks)
    target = understand(labelled[own.target], own.metric)
    remarks += target.remarks
    ids = identity_of(own.id_column, Table(train.path, labelled.drop(columns=own.target)), test)
    rng = np.random.default_rng(seed)
    kept = _kept(labelled, target, ids.named, own.holdout, rng)
    parts = _parts(labelled, test, kept, target, ids, rng)
    _require_distinct_names(parts, target)
    _write(folder, parts, target, remarks)
    grader = FileGrader(
        folder / building.PRIVATE / building.ANSWERS,
        metric=target.spec.name,
        id_column=parts.id_column,
        targets=(target.name,),
        prediction=target.spec.prediction,
        classes=target.classes,
    )
    return _task(own, folder, parts, target, remarks, grader), grader


def _tables(own: OwnData) -> tuple[Table, Table | None]:
    train = read_table(Path(own.train))
    columns = train.frame.columns
    if own.target not in columns:
        raise TaskError(f"{train.path}: {unknown('target column', own.target, columns)}")
    if own.test is None:
        return train, None
    test = read_table(Path(own.test))
    return train, _matching(test, own.target, columns)


def _matching(test: Table, target: str, columns: pd.Index[str]) -> Table:
    """The test rows with the training columns but for the target, in their order."""
    frame, remarks = test.frame, [*test.remarks]
    if target in frame.columns:
        if not blank(frame[target]).all():
            raise TaskError(
                f"{test.path} has the target {target!r} too; without it these rows can be "
                "predicted, or add them to the training rows."
            )
        remarks.append(f"the empty column {target!r} of {test.path.name} was left out.")
        frame = frame.drop(columns=target)
    wanted = [name for name in columns if name != target]
    lacking = [repr(name) for name in wanted if name not in frame.columns]
    extra = [repr(name) for name in frame.columns if name not in wanted]
    if lacking or extra:
        says = [f"lacks {', '.join(lacking[:5])}"] if lacking else []
        says += [f"has {', '.join(extra[:5])} more"] if extra else []
        raise TaskError(
            f"{test.path} does not have the training columns: it {', and '.join(says)}."
        )
    return Table(test.path, frame[wanted], remarks)


def _labelled(train: Table, target: str, remarks: list[str]) -> pd.DataFrame:
    """The rows that have a target."""
    without = blank(train.frame[target])
    labelled = train.frame[~without].reset_index(drop=True)
    if not len(labelled):
        raise TaskError(f"{train.path}: the target {target!r} has no value in any row.")
    if without.any():
        remarks.append(
            f"{count(int(without.sum()), 'row')} of {train.path.name} without a target left out."
        )
    if len(labelled) < LEAST_ROWS:
        raise TaskError(
            f"{train.path} has {count(len(labelled), 'row')} with a target; at least "
            f"{LEAST_ROWS} are needed to train and to grade on."
        )
    return labelled


def _kept(
    labelled: pd.DataFrame,
    target: Target,
    their_id: str | None,
    share: float,
    rng: np.random.Generator,
) -> list[str]:
    """For each row `train`, or the part (`public`, `private`) in which it is graded."""
    import numpy as np

    features = labelled.drop(columns=[target.name, *([their_id] if their_id else [])])
    if features.shape[1] == 0:
        raise TaskError(f"there is no column beside the target {target.name!r} to predict it from.")
    repeats = repeats_of(features)
    numbers = None if target.classes else numbers_in(labelled[target.name])
    strata = strata_of(labelled[target.name], numbers)
    held_out = np.flatnonzero(draw(strata, repeats, share, rng))
    halves = draw(pooled(strata.iloc[held_out]), repeats.iloc[held_out], 0.5, rng)
    public = held_out[halves]
    private = np.setdiff1d(held_out, public)
    if min(len(public), len(private)) < LEAST_HELD_OUT // 2:
        raise TaskError(
            f"{count(len(labelled), 'row')}, {repeats.nunique():,} of them different beside the "
            "target, are too few to keep some to grade on."
        )
    part = ["train"] * len(labelled)
    for name, rows in ((building.PUBLIC, public), (building.PRIVATE, private)):
        for row in rows:
            part[row] = name
    return part


def _parts(
    labelled: pd.DataFrame,
    theirs: Table | None,
    kept: list[str],
    target: Target,
    ids: Identity,
    rng: np.random.Generator,
) -> Parts:
    import pandas as pd

    part = pd.Series(kept)
    train, test = labelled[part == "train"], labelled[part != "train"]
    part = part[part != "train"]
    if theirs is not None:
        test = pd.concat([test, theirs.frame.assign(**{target.name: ""})])
        part = pd.concat([part, pd.Series([IGNORE] * len(theirs.frame))])
    shuffled = rng.permutation(len(test))
    test, part = test.iloc[shuffled], part.iloc[shuffled]
    id_column = ids.usable or free_name(labelled.columns)
    if ids.usable is None:
        train = building.numbered(train, id_column)
        test = building.numbered(test, id_column, first=len(train))
    order = None
    if theirs is not None:
        in_order = test[id_column].iloc[shuffled.argsort()].tail(len(theirs.frame))
        order = _order(in_order, theirs.frame, ids.named)
    return Parts(train, test, part.tolist(), id_column, order)


def _order(task_ids: pd.Series[str], theirs: pd.DataFrame, named: str | None) -> pd.DataFrame:
    """The task's ids in the order of the person's rows, beside their ids or else row numbers."""
    import pandas as pd

    their_ids = theirs[named] if named else pd.Series(range(len(theirs)), name="row")
    order = pd.concat([task_ids.reset_index(drop=True), their_ids.reset_index(drop=True)], axis=1)
    return order.loc[:, ~order.columns.duplicated()]


def _require_distinct_names(parts: Parts, target: Target) -> None:
    """The answers and submissions have one column of each name."""
    if target.name == building.PART:
        raise TaskError(f"the target can not be called {building.PART!r}; rename it.")
    if parts.id_column in target.columns:
        raise TaskError(f"the id column and a class are both called {parts.id_column!r}.")


def _write(folder: Path, parts: Parts, target: Target, remarks: list[str]) -> None:
    train = parts.train
    truth = train[[target.name]] if target.classes else train[[target.name]].astype(float)
    sample = building.sample_submission(
        truth,
        parts.test[parts.id_column],
        targets=(target.name,),
        metric=target.spec.name,
        prediction=target.spec.prediction,
        classes=target.classes,
    )
    try:
        building.write_files(
            *(folder, train, parts.test, parts.part, sample),
            targets=(target.name,),
            id_column=parts.id_column,
        )
    except OSError as error:
        raise TaskError(f"the task can not be written to {folder}: {error.strerror}.") from error
    private = folder / building.PRIVATE
    (private / REMARKS).write_text("".join(f"{line}\n" for line in remarks), encoding="utf-8")
    if parts.order is not None:
        building.write_csv(parts.order, private / ORDER)
        _write_whole(folder, parts)


def _write_whole(folder: Path, parts: Parts) -> None:
    import pandas as pd

    whole = folder / WHOLE
    whole.mkdir(mode=0o700)
    for name in (building.TEST, building.SAMPLE):
        shutil.copy(folder / building.PUBLIC / name, whole)
    held_out = parts.test[[part != IGNORE for part in parts.part]]
    building.write_csv(pd.concat([parts.train, held_out]), whole / building.TRAIN)


def _task(
    own: OwnData,
    folder: Path,
    parts: Parts,
    target: Target,
    remarks: list[str],
    grader: FileGrader,
) -> Task:
    public, private = folder / building.PUBLIC, folder / building.PRIVATE
    grade = grader.grade(public / building.SAMPLE)
    if not grade.valid:
        raise GradingError(f"the sample submission was refused: {grade.problems[0].message}")
    stem = Path(own.train).name.split(".")[0]
    slug = re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-") or "data"
    theirs = [str(Path(path).resolve()) for path in (own.train, own.test) if path]
    return Task(
        id=f"own-{slug}",
        title=f"Predict {target.name}",
        description=describe(parts.train, target, parts.id_column, remarks),
        type=task_type(parts.train.drop(columns=[target.name, parts.id_column]), target),
        split="own",
        metric=target.spec.metric,
        id_column=parts.id_column,
        targets=target.columns,
        prediction=target.spec.prediction,
        classes=target.classes,
        rows=(len(parts.train), len(parts.test)),
        source=Path(own.train).name,
        licence="the owner's",
        inputs=str(public),
        # The person's files hold the rows that are graded.
        masked=(*theirs, str(private), str(folder / WHOLE)),
        baseline=Scores(None, grade.public, grade.private),
    )
