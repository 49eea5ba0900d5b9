"""Everything that a report says. `report.json` is this, field by field: scripts rely on it."""

from __future__ import annotations

from typing import Any, Literal

from mle_ideator.benchmarks.measures.figures import Figures
from mle_ideator.benchmarks.measures.values import Cell, Contender, RunMeasures
from mle_ideator.types import Metric, Value

State = Literal["done", "failed", "unended"]


class Source(Value, frozen=True, kw_only=True):
    """One results folder."""

    label: str
    """What the report calls it."""
    folder: str
    command: str
    """The call that makes these results; empty where no plan is there to tell."""
    settings: dict[str, Any]
    """The plan, as it was asked for."""
    versions: dict[str, str]
    """Of what the first run was made with, by name: mle-ideator, Python, libraries, sandbox."""


class Named(Value, frozen=True, kw_only=True):
    """A contender, and what the report calls it."""

    contender: Contender
    name: str
    runs: int
    flagged: int
    """How many of its runs have a flagged solution."""


class ReportedRun(Value, frozen=True, kw_only=True):
    """A run, and where it comes from."""

    contender: str
    """Its contender's name in this report."""
    source: str
    """Label of its results folder."""
    state: State
    page: str
    """Name of its own page, beside the report's."""
    measures: RunMeasures
    """The contender in it is told apart, if two folders have one of the same name."""


class Absent(Value, frozen=True, kw_only=True):
    """A cell that was asked for and has no run."""

    contender: str
    source: str
    why: str
    """What broke it the last time, if the runner has noted something."""
    cell: Cell


class OnTask(Value, frozen=True, kw_only=True):
    """One contender on one task, over its seeds. Scores are of valid runs alone."""

    contender: str
    runs: int
    valid: int
    flagged: int
    score: float | None
    """Mean of the final scores, of the kind that the task's report tells."""
    worst: float | None
    best: float | None
    human_rank: float | None
    """Mean over all runs, an invalid one has 0; `None` without a leaderboard."""
    medals: dict[str, int]
    """How many of each; empty without a leaderboard."""
    steps_to_first_valid: float | None
    """Mean over the runs that made a valid solution."""


class OfTask(Value, frozen=True, kw_only=True):
    """One task, and every contender on it."""

    task: str
    """As `--task` takes it."""
    name: str
    """What the report calls it."""
    title: str
    metric: Metric | None
    kind: Literal["private", "public", "validation"]
    """Which scores these are: private ones, where there are any."""
    baseline: float | None
    """The trivial solution's score of that kind."""
    ranked: bool
    contenders: tuple[OnTask, ...]


class Report(Value, frozen=True, kw_only=True):
    """What was found out about some contenders, from their runs alone."""

    format: int = 1
    """Of report.json; a key is only removed, or changes its meaning, with another number."""
    title: str
    version: str
    """Of mle-ideator, that made the report."""
    created_at: str
    """UTC, ISO 8601."""
    command: str
    """The call that made the report, as far as known."""
    sources: tuple[Source, ...]
    contenders: tuple[Named, ...]
    figures: Figures
    tasks: tuple[OfTask, ...]
    runs: tuple[ReportedRun, ...]
    absent: tuple[Absent, ...]
    definitions: dict[str, str]
    """What each figure is, in one line, by its name."""

    def task_name(self, task: str) -> str:
        """What the report calls a task, also one that has no runs."""
        names = {of_task.task: of_task.name for of_task in self.tasks}
        return names.get(task, task)

    def name_of(self, contender: Contender) -> str:
        """What the report calls it. Raises `KeyError`."""
        names = {named.contender: named.name for named in self.contenders}
        return names[contender]

    @property
    def flagged(self) -> tuple[ReportedRun, ...]:
        """Runs whose final solution may not be fair play. They are in every figure."""
        return tuple(run for run in self.runs if run.measures.flags)
