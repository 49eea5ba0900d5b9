"""All installed task sources as one.

A task is named by its id, by its source and what that makes of the rest (`mlebench:DATA/ID`), or by
the path of its folder.
"""

from __future__ import annotations

import os
from pathlib import Path

from mle_ideator.benchmarks.leaderboards import Leaderboard
from mle_ideator.errors import TaskError, unknown
from mle_ideator.protocols import Grader, TaskCard, TaskSource
from mle_ideator.registry import create, registered
from mle_ideator.types import Task

OF_FOLDERS = "folder"


def all_cards() -> list[TaskCard]:
    """The cards of every task of every source, in the sources' own order."""
    return [card for source in map(_source, registered("task_sources")) for card in source.cards()]


def load_task(spec: str) -> tuple[Task, Grader]:
    """A task and its grader, built if need be. Raises `TaskError` naming the nearest id."""
    source, name = _found(spec)
    return source.load(name)


def leaderboard_of(spec: str) -> Leaderboard | None:
    """What other solutions of a task score, as far as its source knows. Raises `TaskError`."""
    source, name = _found(spec)
    read = getattr(source, "leaderboard", None)
    board: Leaderboard | None = read(name) if read else None
    return board


def whole_inputs_of(spec: str) -> Path | None:
    """Of `SOURCE:…` with rows of a person's own to predict: the inputs with every labelled row."""
    name, _, rest = spec.partition(":")
    made = getattr(_source(name), "whole_inputs", None) if _is_source(name) else None
    whole: Path | None = made(rest) if made else None
    return whole


def export_predictions_of(spec: str, submission: Path, destination: Path) -> None:
    """Write what a submission predicts for such rows, if the task has any, in their own form."""
    name, _, rest = spec.partition(":")
    if _is_source(name) and (write := getattr(_source(name), "export", None)):
        write(rest, submission, destination)


def _is_source(name: str) -> bool:
    return name in registered("task_sources")


def _found(spec: str) -> tuple[TaskSource, str]:
    """The source of a task, and how that calls it."""
    name, colon, rest = spec.partition(":")
    if colon and _is_source(name):
        return _source(name), rest
    if os.sep in spec:
        return _source(OF_FOLDERS), spec
    known = []
    for source in map(_source, registered("task_sources")):
        ids = [card.id for card in source.cards()]
        if spec in ids:
            return source, spec
        known += ids
    raise TaskError(unknown("task", spec, known))


def _source(name: str) -> TaskSource:
    source: TaskSource = create("task_sources", name)
    return source
