"""A Kaggle competition that a person downloaded, as a task with a hold-out.

    downloading  with the person's own credentials (extra `kaggle`)
    files        train, test and sample submission, zipped or not
    declaring    kaggle.yaml: what the files do not tell
    assembling   all of it into a task, by way of `own_data`
    exporting    predictions of the real test rows, in the sample's form

Nothing is ever submitted: that is the person's own act (`docs/kaggle.md`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mle_ideator.protocols import Grader, TaskCard
from mle_ideator.types import Task


class KaggleFolders:
    """The task source `kaggle`: a competition by the folder that it was downloaded to.

    Lists nothing: what lies where is the caller's to know.
    """

    def cards(self) -> Sequence[TaskCard]:
        return ()

    def load(self, path: str) -> tuple[Task, Grader]:
        """The task, built at its first use and cached. Raises `TaskError`."""
        from mle_ideator.benchmarks.kaggle.assembling import load

        return load(Path(path))

    def whole_inputs(self, path: str) -> Path | None:
        """The inputs with every labelled row: for the fit that goes home."""
        from mle_ideator.benchmarks.kaggle.assembling import built_folder
        from mle_ideator.benchmarks.own_data import whole_inputs_of

        return whole_inputs_of(built_folder(Path(path)))

    def export(self, path: str, submission: Path, destination: Path) -> None:
        """Write what a valid submission predicts for the competition's test rows, as its sample
        submission has them."""
        from mle_ideator.benchmarks.kaggle.assembling import built_folder
        from mle_ideator.benchmarks.kaggle.exporting import export

        export(built_folder(Path(path)), submission, destination)
