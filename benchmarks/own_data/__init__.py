"""A person's own files as a task.

Some of the training rows are kept from the agents and graded on. Agents get the others as
`train.csv`, and as `test.csv` the kept rows together with the person's test rows, shuffled; all of
them have to be predicted, only the kept ones are scored. At the end the final solution is fitted
once more to all rows, and `export_predictions` writes its predictions of the person's test rows in
the person's own form.

    reading    files -> cells as text, or one line that says what is wrong
    target     what the target is and which metric fits
    identity   which column names the rows
    holdout    which rows are kept
    assembling all of it, into a folder
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mle_ideator.errors import TaskError
from mle_ideator.protocols import Grader
from mle_ideator.types import Task

if TYPE_CHECKING:
    from mle_ideator.config import OwnData

ORDER = "test_rows.csv"
"""The task's ids of the person's test rows, in their order, and their own ids."""
REMARKS = "remarks.txt"
WHOLE = "whole"
"""The inputs once more, with the held-out rows in train.csv: for the fit that goes home."""


def load_own_data(own: OwnData, folder: Path, seed: int = 0) -> tuple[Task, Grader]:
    """The task made of `own`, with its files below `folder` (`public/` and `private/`).

    The folder must be new or empty. Raises `TaskError`, in one line, if the data are unusable.
    """
    from mle_ideator.benchmarks.own_data.assembling import assemble

    return assemble(own, folder, seed)


def remarks_of(folder: Path) -> list[str]:
    """What a person should know of how their data were read, from a folder that was built."""
    return (folder / "private" / REMARKS).read_text(encoding="utf-8").splitlines()


def whole_inputs_of(folder: Path) -> Path | None:
    """The inputs with every labelled row, if there are rows of the person's own to predict."""
    whole = folder / WHOLE
    return whole if whole.is_dir() else None


def export_predictions(folder: Path, submission: Path, destination: Path) -> bool:
    """Write a submission's predictions of the person's test rows, in their order, with their ids.

    `folder` is where the task was built, `submission` a valid submission. False, and nothing is
    written, if there were no test rows of the person's own.
    """
    import pandas as pd

    order_file = folder / "private" / ORDER
    if not order_file.exists():
        return False
    order = pd.read_csv(order_file, dtype=str, keep_default_na=False)
    predicted = pd.read_csv(submission, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    id_column = order.columns[0]
    if id_column not in predicted or not order[id_column].isin(predicted[id_column]).all():
        raise TaskError(f"{submission} does not predict all rows of the test file.")
    rows = predicted.set_index(id_column).loc[order[id_column]]
    extra = [name for name in rows.columns if not str(name).strip()]
    result = pd.concat(
        [order.iloc[:, -1].reset_index(drop=True), rows.drop(columns=extra).reset_index(drop=True)],
        axis=1,
    )
    result.to_csv(destination, index=False, lineterminator="\n")
    return True
