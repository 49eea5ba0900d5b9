"""Predictions of a competition's test rows, in the form of its sample submission."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mle_ideator.benchmarks.kaggle.assembling import SAMPLE, TEST_IDS, THEIRS
from mle_ideator.benchmarks.own_data import export_predictions
from mle_ideator.errors import TaskError

if TYPE_CHECKING:
    import pandas as pd


def export(data: Path, submission: Path, destination: Path) -> None:
    """Write what `submission` predicts for the test rows: the sample's columns, ids and order.

    `data` is the folder of `assembling.built_folder`. Raises `TaskError` if the prediction columns
    can not be told to be the sample's.
    """
    theirs = data.parent / THEIRS
    export_predictions(data, submission, destination)  # in the order of the test file
    predicted = _table(destination).iloc[:, 1:]
    sample = _table(theirs / SAMPLE)
    result = _renamed(predicted, [str(name) for name in sample.columns[1:]])
    result = result.set_axis(_test_ids(theirs, sample), axis="index")
    ids = sample.iloc[:, 0]
    result = result.loc[ids].reset_index(drop=True)
    result.insert(0, str(ids.name), ids)
    result.to_csv(destination, index=False, lineterminator="\n")


def _test_ids(theirs: Path, sample: pd.DataFrame) -> pd.Series[str]:
    """Of each test row; without an id column in the test file, the sample's are in its order."""
    file = theirs / TEST_IDS
    return _table(file).iloc[:, 0] if file.exists() else sample.iloc[:, 0]


def _renamed(predicted: pd.DataFrame, wanted: Sequence[str]) -> pd.DataFrame:
    """The same predictions under the sample's names: `Status_C` is the class `C`."""
    own = [str(name) for name in predicted.columns]
    if len(own) == len(wanted) == 1:
        return predicted.set_axis(list(wanted), axis="columns")
    sources = {name: _source(name, own) for name in wanted}
    if len(own) != len(wanted) or set(sources.values()) != set(own):
        raise TaskError(
            f"the sample submission has the columns {', '.join(wanted)}, the task predicts "
            f"{', '.join(own)}; choose a metric that needs what the sample asks for"
        )
    columns = [sources[name] for name in wanted]
    return predicted[columns].set_axis(list(wanted), axis="columns")


def _source(name: str, own: Sequence[str]) -> str:
    endings = [column for column in own if name == column or name.endswith(f"_{column}")]
    return max(endings, key=len, default="")


def _table(file: Path) -> pd.DataFrame:
    import pandas as pd

    return pd.read_csv(file, dtype=str, keep_default_na=False)
