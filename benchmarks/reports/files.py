"""A report as files for programs: `report.json`, `runs.csv`, `figures.csv`. docs/reports.md tells
their keys and columns."""

from __future__ import annotations

from pathlib import Path

import msgspec

from mle_ideator.benchmarks.measures.figures import CategoryFigures, Figure
from mle_ideator.benchmarks.reports.by_task import KINDS, score_of
from mle_ideator.benchmarks.reports.spreadsheet import Line, csv_of
from mle_ideator.benchmarks.reports.values import Report, ReportedRun
from mle_ideator.files import replace_file

RUN_COLUMNS = (
    "source", "task", "contender", "ideator", "implementer", "seed", "state", "outcome", "valid",
    "validation", "public", "private", "human_rank", "medal", "above_median", "steps",
    "steps_to_first_valid", "seconds_to_first_valid", "duration_s", "help_requests", "ideas",
    "improvements", "input_tokens", "output_tokens", "cost_usd", "flags", "folder",
)  # fmt: skip
FIGURE_COLUMNS = (
    "contender", "ideator", "implementer", "figure", "category", "value", "low", "high", "n",
    "standard_error",
)  # fmt: skip


def report_json(report: Report) -> bytes:
    """Everything, indented, with a newline at its end."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def write_files(report: Report, folder: Path) -> tuple[Path, ...]:
    """Write all three into a folder; what stood there is replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    contents = {
        "report.json": report_json(report),
        "runs.csv": csv_of(RUN_COLUMNS, _runs(report)),
        "figures.csv": csv_of(FIGURE_COLUMNS, _figures(report)),
    }
    for name, content in contents.items():
        replace_file(folder / name, content)
    return tuple(folder / name for name in contents)


def _runs(report: Report) -> list[Line]:
    return [_run(run) for run in report.runs] + [
        [
            absent.source, absent.cell.task, absent.contender, absent.cell.contender.ideator,
            absent.cell.contender.implementer, absent.cell.seed, "missing",
            *[None] * (len(RUN_COLUMNS) - 7),
        ]
        for absent in report.absent
    ]  # fmt: skip


def _run(run: ReportedRun) -> Line:
    one = run.measures
    scores = {kind: score_of(one.scores, kind) for kind in reversed(KINDS)}
    return [
        run.source, one.cell.task, run.contender, one.cell.contender.ideator,
        one.cell.contender.implementer, one.cell.seed, run.state, one.outcome, one.valid,
        *(score.value if score else None for score in scores.values()),
        *((one.human_rank, one.medal, one.above_median) if one.ranked else (None, None, None)),
        one.steps, one.steps_to_first_valid, one.seconds_to_first_valid, one.duration_s,
        one.help_requests, len(one.ideas), one.improvements, one.usage.input_tokens,
        one.usage.output_tokens, one.usage.cost_usd, " ".join(sorted({f.code for f in one.flags})),
        one.folder,
    ]  # fmt: skip


def _figures(report: Report) -> list[Line]:
    lines: list[Line] = []
    for theirs in report.figures.contenders:
        contender = theirs.contender
        head = [report.name_of(contender), contender.ideator, contender.implementer]
        lines += [[*head, *_figure(figure)] for figure in theirs.figures]
        for category in theirs.categories:
            lines += [[*head, *_figure(f, category)] for f in (category.share, category.improved)]
    return lines


def _figure(figure: Figure, category: CategoryFigures | None = None) -> Line:
    about = "" if category is None else category.category or "unknown"
    numbers = (figure.value, figure.low, figure.high, figure.n, figure.standard_error)
    return [f"category_{figure.name}" if category else figure.name, about, *numbers]
