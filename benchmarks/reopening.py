"""From a run's record back to where its solutions can be run and judged again."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import msgspec

from mle_ideator import __version__
from mle_ideator.benchmarks.building import SAMPLE
from mle_ideator.benchmarks.setups import DATA, usable_sandbox
from mle_ideator.benchmarks.sources import load_task
from mle_ideator.config import RunConfig
from mle_ideator.errors import GradingError, TaskError, UsageError
from mle_ideator.journal import Started
from mle_ideator.protocols import Grader
from mle_ideator.setups import Place
from mle_ideator.types import Score, Scores, Task

RELATIVE_TOLERANCE = 1e-9
"""Scores that differ by less, as a share of the larger, differ by rounding."""

_DECISIVE = ("metric", "prediction", "id_column", "targets", "classes", "rows")
"""What has to be as it was for scores to be of the same thing."""


def place_of(started: Started, run: Path, sandbox: str | None = None) -> tuple[Place, list[str]]:
    """The recorded task, with a sandbox like the run's or another; and what to know of the task.

    `run` is the run's folder, of which nothing is changed. Raises `UsageError` if the record is of
    a version that is not known here, or if the task is not the one that was recorded.
    """
    _require_known(started.version)
    config = _config(started, sandbox)
    _, factory = usable_sandbox(config)
    if config.data is None:
        task, grader = load_task(config.task or started.task.id)
    else:
        from mle_ideator.benchmarks.own_data.reopening import reopen

        task, grader = reopen(started.task, config.data, run / DATA)
        task = msgspec.structs.replace(task, baseline=_baseline(task, grader, run / DATA))
    remarks = _compare(started.task, task, run)
    return Place(task=task, grader=grader, sandbox=factory, config=config), remarks


def _require_known(version: str) -> None:
    numbers, own = _numbers(version), _numbers(__version__)
    if numbers is None or own is None or numbers > own:
        raise UsageError(
            f"the run was recorded by mle-ideator {version}, of which this one, {__version__}, "
            "does not know what it means; reproduce it with that version."
        )


def _numbers(version: str) -> tuple[int, ...] | None:
    found = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", version)
    return tuple(int(number or 0) for number in found.groups()) if found else None


def _config(started: Started, sandbox: str | None) -> RunConfig:
    values: dict[str, Any] = dict(started.config)
    if sandbox is not None and sandbox != values.get("sandbox"):
        values |= {"sandbox": sandbox, "sandbox_options": {}}
    try:
        return msgspec.convert(values, RunConfig)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"the recorded config can not be read: {error}; mle-ideator {started.version} wrote "
            f"it, this is {__version__}."
        ) from error


def _baseline(task: Task, grader: Grader, data: Path) -> Scores:
    """The trivial solution's scores, graded anew: they tell whether the answers are the same."""
    try:
        grade = grader.grade(Path(task.inputs) / SAMPLE)
    except GradingError as error:
        raise TaskError(f"{data} was changed since the run: {error}.") from error
    return Scores(None, grade.public, grade.private)


def _compare(recorded: Task, found: Task, run: Path) -> list[str]:
    """Remarks on a task that is the recorded one as far as can be told. Raises `TaskError`."""
    changed = [name for name in _DECISIVE if getattr(recorded, name) != getattr(found, name)]
    pairs = (
        (recorded.baseline.public, found.baseline.public),
        (recorded.baseline.private, found.baseline.private),
    )
    if not all(close(old, new) for old, new in pairs):
        changed.append("baseline")
    if changed:
        raise TaskError(_otherwise(recorded, found, changed, run))
    # The folder of a bundled task is named by the hash of all that its files are made from.
    names = {Path(task.inputs).parent.name for task in (recorded, found)}
    if recorded.split == "own" or len(names) == 1:
        return []
    return [
        f"the files of task {found.id} were made anew, by another version of its source or of its "
        "package; metric, rows and baseline are the same."
    ]


def _otherwise(recorded: Task, found: Task, changed: list[str], run: Path) -> str:
    what = f"its {' and '.join(changed)} {'is' if len(changed) == 1 else 'are'} not as recorded"
    if recorded.split == "own":
        return (
            f"{run / DATA} was changed since the run: {what}; put the run's own data folder back."
        )
    if recorded.source != found.source:
        was, now = (task.source.partition(":")[0] for task in (recorded, found))
        return f"task {found.id} is another one here: {what}; it came from {was}, now from {now}."
    return (
        f"task {found.id} is another one here: {what}; reproduce the run with the version of "
        "mle-ideator that made it."
    )


def close(recorded: Score | None, found: Score | None, least: float = 0.0) -> bool:
    """Equal up to rounding, or up to `least` where that is more; unscored equals unscored."""
    if recorded is None or found is None:
        return recorded is found
    return math.isclose(recorded.value, found.value, rel_tol=RELATIVE_TOLERANCE, abs_tol=least)
