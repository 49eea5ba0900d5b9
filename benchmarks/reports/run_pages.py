"""A page of each run: its steps, ideas and scores, and what changed from solution to solution."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Literal

from mle_ideator.benchmarks.reports import wording
from mle_ideator.benchmarks.reports.by_task import KINDS, score_of
from mle_ideator.benchmarks.reports.naming import marked, plain
from mle_ideator.benchmarks.reports.page import link, pages_folder, render, run_folder
from mle_ideator.benchmarks.reports.values import Report, ReportedRun
from mle_ideator.errors import UsageError
from mle_ideator.files import replace_file
from mle_ideator.journal import read_journal
from mle_ideator.plain_text import one_line, printable
from mle_ideator.results import Record, record_of
from mle_ideator.types import (
    Execute,
    Finish,
    Idea,
    Malformed,
    Scores,
    SeekHelp,
    Solution,
    Step,
    Value,
)

_TEXT, _LINES, _WIDTH = 6_000, 600, 400
"""Most characters of a text, lines of a diff, and characters of a line in it."""


class DiffLine(Value, frozen=True):
    kind: Literal["same", "new", "old", "place"]
    text: str


class ShownStep(Value, frozen=True, kw_only=True):
    """A step as the page tells it; texts are printable and cut."""

    number: int
    action: str
    outcome: str
    thought: str
    code: str
    request: tuple[tuple[str, str], ...]
    idea: Idea | None
    improved: bool
    output: str
    solution: str
    """Its number and scores, if it made one."""
    best: bool
    against: str
    """What the diff compares the solution with."""
    diff: tuple[DiffLine, ...]


def write_run_pages(report: Report, path: Path) -> tuple[Path, ...]:
    """A page for each run whose journal can be read, beside the report's page at `path`."""
    folder = pages_folder(path)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for run in report.runs:
        page = folder / run.page
        replace_file(page, _page(report, run, page, path).encode("utf-8", "replace"))
        written.append(page)
    return tuple(written)


def _page(report: Report, run: ReportedRun, page: Path, back: Path) -> str:
    folder = run_folder(report, run)
    try:
        record, trouble = record_of(read_journal(folder)), ""
    except UsageError as error:
        record, trouble = None, plain(str(error))
    one = run.measures
    return render(
        "run",
        run=run,
        name=marked(run.contender, bool(one.flags)),
        task=report.task_name(one.cell.task),
        facts=_facts(run),
        trouble=trouble,
        steps=list(_steps(record)) if record else [],
        warnings=[plain(warning) for warning in record.warnings] if record else [],
        back=link(back, page),
        files={name: link(folder / name, page) for name in _files(folder)},
        command=plain(shlex.join(["mle-ideator", "show", str(folder), "--full"])),
    )


def _files(folder: Path) -> list[str]:
    names = ("journal.jsonl", "config.yaml", "summary.json", "solution.py", "submission.csv")
    return [name for name in names if (folder / name).is_file()]


def _facts(run: ReportedRun) -> dict[str, str]:
    one = run.measures
    usage = one.usage
    return {
        "state": wording.state_text(run),
        "outcome": plain(wording.outcome_text(one))
        + (f": {plain(one.detail)}" if one.detail else ""),
        "final scores": _scores(one.scores),
        "HumanRank": f"{one.human_rank:.3f}" if one.ranked else wording.NONE,
        "medal": one.medal or wording.NONE,
        "steps": str(one.steps),
        "ideas that improved": f"{one.improvements} of {len(one.ideas)}",
        "time": wording.seconds_text(one.duration_s),
        "tokens": wording.NONE if usage.tokens is None else wording.count_text(usage.tokens),
        "cost": wording.NONE if usage.cost_usd is None else f"${usage.cost_usd:.3f}",
    }


def _steps(record: Record) -> Iterator[ShownStep]:
    solutions = {solution.number: solution for solution in record.solutions}
    improved = set(record.improved)
    best: Solution | None = None
    for step in record.steps:
        made = solutions.get(step.solution or 0)
        yield _shown(step, made, best, record, step.number in improved)
        if made and made.number in record.bests:
            best = made


def _shown(
    step: Step, made: Solution | None, before: Solution | None, record: Record, improved: bool
) -> ShownStep:
    action = step.action
    request = action.request if isinstance(action, SeekHelp) else None
    return ShownStep(
        number=step.number,
        action=_name(step),
        outcome=f"{step.observation.status}, {wording.seconds_text(step.observation.duration_s)}",
        thought=cut(step.thought),
        code=cut(action.code) if isinstance(action, Execute) else "",
        request=tuple(
            (name, cut(getattr(request, name)))
            for name in ("problem", "attempts", "goal")
            if request
        ),
        idea=_idea(step.idea),
        improved=improved,
        output=cut(step.observation.text),
        solution=f"#{made.number}: {_scores(made.scores)}" if made else "",
        best=made is not None and made.number in record.bests,
        against=f"#{before.number}" if made and before else "",
        diff=tuple(diff_of(before.code if before else "", made.code)) if made else (),
    )


def _idea(idea: Idea | None) -> Idea | None:
    return idea and Idea(cut(idea.analysis), cut(idea.action), cut(idea.rationale))


def _name(step: Step) -> str:
    match step.action:
        case Execute(language=language):
            return f"ran {language}"
        case SeekHelp(asked_by=asker):
            return "sought help" if asker == "implementer" else "was given help"
        case Finish(reason=reason):
            return f"finished: {one_line(printable(reason), 120)}" if reason else "finished"
        case Malformed(reason=reason):
            return f"could not be read: {one_line(printable(reason), 120)}"


def _scores(scores: Scores) -> str:
    known = {kind: score for kind in KINDS if (score := score_of(scores, kind))}
    return ", ".join(f"{kind} {score}" for kind, score in known.items()) or "unscored"


def cut(text: str) -> str:
    """Head and tail of a text, printable; what was left out is counted."""
    if len(text) <= _TEXT:
        return printable(text)
    half = _TEXT // 2
    left_out = f"\n… {len(text) - 2 * half:,} characters are left out …\n"
    return printable(text[:half]) + left_out + printable(text[-half:])


def diff_of(before: str, after: str) -> Iterator[DiffLine]:
    """What changed, as a unified diff; of very long solutions their beginning."""
    old, new = before.splitlines(), after.splitlines()
    compared = unified_diff(old[:_LINES], new[:_LINES], n=2, lineterm="")
    kinds: dict[str, Literal["same", "new", "old", "place"]]
    kinds = {"+": "new", "-": "old", "@": "place"}
    for number, line in enumerate(compared):
        if number >= 2:  # the names of the files
            shown = printable(line[:_WIDTH]) + "…" * (len(line) > _WIDTH)
            yield DiffLine(kinds.get(line[:1], "same"), shown)
    if (left_out := max(len(old), len(new)) - _LINES) > 0:
        yield DiffLine("place", f"… {left_out:,} further lines are not compared …")
