"""From results folders to a report. Nothing is stored besides the runs: all is read from them."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from mle_ideator import __version__
from mle_ideator.benchmarks.measures.contenders import figures_of
from mle_ideator.benchmarks.measures.figures import DEFINITIONS
from mle_ideator.benchmarks.measures.one_run import measure_all
from mle_ideator.benchmarks.measures.values import Cell, Contender, RunMeasures
from mle_ideator.benchmarks.reports.by_task import tasks_of
from mle_ideator.benchmarks.reports.naming import labels_of, names_of, plain, told_apart
from mle_ideator.benchmarks.reports.values import (
    Absent,
    Named,
    Report,
    ReportedRun,
    Source,
    State,
)
from mle_ideator.benchmarks.runner.folders import PLAN
from mle_ideator.benchmarks.runner.plan import Plan, read_plan
from mle_ideator.benchmarks.runner.states import read_state
from mle_ideator.benchmarks.suites import suite_tasks
from mle_ideator.config import RunConfig
from mle_ideator.errors import TaskError, UsageError
from mle_ideator.journal import Started, read_journal


class ResultsOf(msgspec.Struct, frozen=True, kw_only=True):
    """One results folder, read."""

    label: str
    """Told apart from the others'."""
    path: Path
    """As the caller names it."""
    plan: Plan | None
    runs: list[RunMeasures]

    @property
    def asked(self) -> list[Cell]:
        return self.plan.cells() if self.plan else []

    @property
    def cells(self) -> list[Cell]:
        return [*self.asked, *(run.cell for run in self.runs)]


def gather(roots: Sequence[Path], command: str = "") -> Report:
    """Everything about the runs in some results folders.

    `command` is the call that the report is made by. Raises `UsageError` where there are no runs.
    """
    return report_of(_read(roots), command)


def report_of(folders: Sequence[ResultsOf], command: str = "") -> Report:
    """Everything about runs that have been measured."""
    apart = told_apart({folder.label: folder.cells for folder in folders})
    names = names_of(apart.values())
    runs = [run for folder in folders for run in _runs_of(folder, apart, names)]
    absent = [cell for folder in folders for cell in _absent_of(folder, apart, names)]
    asked = [_apart(cell, folder.label, apart) for folder in folders for cell in folder.asked]
    contenders = tuple(_named(contender, name, runs) for contender, name in names.items())
    tasks = tasks_of(runs, [named.name for named in contenders])
    called = {task.task: task.name for task in tasks}
    paged = tuple(
        msgspec.structs.replace(run, page=_page_of(run, called[run.measures.cell.task]))
        for run in runs
    )
    return Report(
        title=_title(contenders, folders),
        version=__version__,
        created_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        command=command,
        sources=tuple(_source(folder) for folder in folders),
        contenders=contenders,
        figures=figures_of([run.measures for run in runs], expected=asked),
        tasks=tasks,
        runs=paged,
        absent=tuple(absent),
        definitions=dict(DEFINITIONS),
    )


def _read(roots: Sequence[Path]) -> list[ResultsOf]:
    whole = [root.resolve() for root in roots]
    if len(set(whole)) < len(whole):
        raise UsageError("the same results folder is named twice; name each once.")
    labels = labels_of([path.parts for path in whole])
    folders = [_folder(plain(label), path) for label, path in zip(labels, roots, strict=True)]
    if not any(folder.runs for folder in folders):
        where = ", ".join(str(root) for root in roots)
        raise UsageError(f"{where} holds no runs; make some with `mle-ideator bench run`.")
    return folders


def _folder(label: str, path: Path) -> ResultsOf:
    if not path.is_dir():
        raise UsageError(f"{path} is no folder with the results of `mle-ideator bench run`.")
    plan = read_plan(path) if (path / PLAN).exists() else None
    runs = sorted(measure_all(path), key=lambda run: (run.cell, run.folder))
    return ResultsOf(label=label, path=path, plan=plan, runs=runs)


Apart = dict[tuple[str, Contender], Contender]
Names = dict[Contender, str]


def _apart(cell: Cell, label: str, apart: Apart) -> Cell:
    return msgspec.structs.replace(cell, contender=apart[label, cell.contender])


def _runs_of(folder: ResultsOf, apart: Apart, names: Names) -> list[ReportedRun]:
    runs = []
    for measures in folder.runs:
        cell = _apart(measures.cell, folder.label, apart)
        runs.append(
            ReportedRun(
                contender=names[cell.contender],
                source=folder.label,
                state=_state(measures),
                page="",
                measures=msgspec.structs.replace(measures, cell=cell),
            )
        )
    return runs


def _state(run: RunMeasures) -> State:
    if run.outcome is None:
        return "unended"
    return "failed" if run.outcome == "failed" else "done"


def _absent_of(folder: ResultsOf, apart: Apart, names: Names) -> list[Absent]:
    there = {run.cell for run in folder.runs}
    absent = []
    for asked in folder.asked:
        if asked in there:
            continue
        noted, cell = read_state(folder.path, asked), _apart(asked, folder.label, apart)
        absent.append(
            Absent(
                contender=names[cell.contender],
                source=folder.label,
                why=noted.error,
                cell=cell,
            )
        )
    return absent


def _named(contender: Contender, name: str, runs: Sequence[ReportedRun]) -> Named:
    own = [run.measures for run in runs if run.measures.cell.contender == contender]
    flagged = sum(bool(run.flags) for run in own)
    return Named(contender=contender, name=name, runs=len(own), flagged=flagged)


def _page_of(run: ReportedRun, task: str) -> str:
    """A name that is harmless as a file and in a link, tells which run it is, and stays its own."""
    parts = (task, run.contender, f"seed-{run.measures.cell.seed}")
    said = "-".join(re.sub(r"[^A-Za-z0-9.]+", "-", part).strip("-.")[:40] for part in parts)
    place = f"{run.source}\n{run.measures.folder}".encode("utf-8", "replace")
    return f"{said}-{hashlib.sha256(place).hexdigest()[:8]}.html"


def _title(contenders: Sequence[Named], folders: Sequence[ResultsOf]) -> str:
    names = [named.name for named in contenders]
    who = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    if len(names) > 4:
        who = f"{len(names)} contenders"
    suites = list(dict.fromkeys(folder.plan.suite for folder in folders if folder.plan))
    return f"{who} on {plain(', '.join(suites))}" if suites else who


def _source(folder: ResultsOf) -> Source:
    plan = folder.plan
    return Source(
        label=folder.label,
        folder=str(folder.path),
        command=command_of(plan, folder.path) if plan else "",
        settings=msgspec.json.decode(msgspec.json.encode(plan)) if plan else {},
        versions=_versions(folder),
    )


def command_of(plan: Plan, out: Path) -> str:
    """The call that makes the results of a plan, from what differs from the defaults."""
    words = ["mle-ideator", "bench", "run", *_tasks_said(plan)]
    for option, specs in (("--ideator", plan.ideators), ("--implementer", plan.implementers)):
        for spec in specs:
            words += [option, spec]
    if plan.seeds == tuple(range(len(plan.seeds))):
        words += ["--seeds", str(len(plan.seeds))]
    else:
        words += [word for seed in plan.seeds for word in ("--seed", str(seed))]
    for key, value in _changed(plan.config, msgspec.to_builtins(RunConfig())):
        words += ["--set", f"{key}={msgspec.json.encode(value).decode()}"]
    return shlex.join([*words, "--out", str(out)])


def _tasks_said(plan: Plan) -> list[str]:
    """By the suite's name where that is all, else one by one."""
    try:
        if suite_tasks(plan.suite).tasks == plan.tasks:
            return ["--suite", plan.suite]
    except TaskError:
        pass  # it needs data, or is the name of tasks put together by hand
    return [word for task in plan.tasks for word in ("--task", task)]


def _changed(
    config: dict[str, Any], usual: dict[str, Any], prefix: str = ""
) -> list[tuple[str, Any]]:
    changed: list[tuple[str, Any]] = []
    for key, value in config.items():
        common = usual.get(key)
        if isinstance(value, dict) and isinstance(common, dict) and common:
            changed += _changed(value, common, f"{prefix}{key}.")
        elif _as_read(value) != _as_read(common):
            changed.append((prefix + key, value))
    return changed


def _as_read(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _versions(folder: ResultsOf) -> dict[str, str]:
    """What the first run that can be read was made with."""
    for run in folder.runs:
        try:
            started = read_journal(folder.path / run.folder)[0]
        except UsageError:
            continue
        assert isinstance(started, Started)  # noqa: S101 - read_journal has made sure
        sandbox = started.sandbox
        return {
            "mle-ideator": started.version,
            "Python": sandbox.python,
            **sandbox.libraries,
            "sandbox": sandbox.kind,
            "cores": str(sandbox.cores),
        }
    return {}
