"""A person's data as a run has split them: the same task again, from the folder that it kept."""

from __future__ import annotations

from pathlib import Path

import msgspec

from mle_ideator.benchmarks.building import ANSWERS, PRIVATE, PUBLIC, SAMPLE, TEST, TRAIN
from mle_ideator.benchmarks.grading import FileGrader
from mle_ideator.benchmarks.own_data import WHOLE
from mle_ideator.config import OwnData
from mle_ideator.errors import TaskError
from mle_ideator.protocols import Grader
from mle_ideator.types import Task


def reopen(task: Task, own: OwnData, folder: Path) -> tuple[Task, Grader]:
    """The recorded task with its files in `folder`, wherever that lies now, and its grader.

    Nothing is written. Raises `TaskError` if files are missing.
    """
    public, private = folder / PUBLIC, folder / PRIVATE
    needed = [*(public / name for name in (TRAIN, TEST, SAMPLE)), private / ANSWERS]
    missing = [str(path.relative_to(folder)) for path in needed if not path.is_file()]
    if missing:
        raise TaskError(
            f"{folder} lacks {', '.join(missing)}: the rows that were kept to grade on can not be "
            "drawn again; put the run's whole data folder back."
        )
    grader = FileGrader(
        private / ANSWERS,
        metric=task.metric.name,
        id_column=task.id_column,
        targets=(own.target,),
        prediction=task.prediction,
        classes=task.classes,
    )
    theirs = [path for path in (own.train, own.test) if path]
    masked = (*theirs, str(private), str(folder / WHOLE))
    return msgspec.structs.replace(task, inputs=str(public), masked=masked), grader
