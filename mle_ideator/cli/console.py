"""The console of a running session: a function of its journal, live on a terminal, lines elsewhere.

A console is a journal listener. It holds the events it was told and draws from them; nothing in a
session waits for it or depends on it.
"""

from __future__ import annotations

import os
import time
from types import TracebackType
from typing import Protocol, Self, TextIO

import msgspec
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from mle_ideator.cli.text import duration, one_line, printable
from mle_ideator.journal import (
    Decided,
    Ended,
    Event,
    Refitted,
    Rejected,
    Rerun,
    Solved,
    Started,
    Stepped,
    Warned,
)
from mle_ideator.limits import Limits
from mle_ideator.results import Baseline, Best, Record, Summary, record_of
from mle_ideator.types import Action, Execute, Finish, Malformed, Scores, SeekHelp, Step


class SessionConsole(Protocol):
    """Shows a session while it runs, and what came of it."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    def __call__(self, event: Event) -> None: ...

    def finish(self, summary: Summary) -> None: ...


def console_for(stream: TextIO) -> SessionConsole:
    """A live view if the stream is a terminal, plain lines otherwise."""
    console = _Patient(file=stream, highlight=False, soft_wrap=not stream.isatty())
    return LiveConsole(console) if console.is_terminal else PlainConsole(console)


class _Patient(Console):
    """A reader who goes away (`| head`) does not end the session."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


class PlainConsole:
    """One line an event."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __call__(self, event: Event) -> None:
        line = line_of(event)
        if line:
            self._console.print(Text(line), soft_wrap=True)

    def finish(self, summary: Summary) -> None:
        self._console.print(closing(summary), soft_wrap=True)


def line_of(event: Event) -> str:
    """An event in one line; empty for what needs none."""
    match event:
        case Started(task=task, sandbox=sandbox):
            direction = "higher" if task.metric.higher_is_better else "lower"
            line = (
                f"{task.id}: {task.title} ({task.metric.name}, {direction} is better), "
                f"baseline {scores_text(_guiding(task.baseline))}, sandbox {sandbox.kind}"
            )
        case Decided(step=number, decision=decision):
            thought = f" - {one_line(decision.thought, 160)}" if decision.thought else ""
            line = f"[{number}] {name_of(decision.action)}{thought}"
        case Stepped(step=step):
            line = f"[{step.number}] {outcome_of(step)}"
        case Solved(solution=solution, best=best):
            mark = ", the best so far" if best else ""
            line = (
                f"    solution #{solution.number}: {scores_text(_guiding(solution.scores))}{mark}"
            )
        case Rejected(grade=grade):
            line = "    submission refused: " + "; ".join(p.message for p in grade.problems)
        case Warned(message=message):
            line = f"    warning: {message}"
        case Rerun(solution=number, reproduced=reproduced, scores=scores):
            verdict = scores_text(_guiding(scores)) if reproduced else "failed"
            line = f"clean re-run of solution #{number}: {verdict}"
        case Refitted(solution=number, detail=detail):
            verdict = "failed" if detail else "done"
            line = f"fit of solution #{number} to all labelled rows: {verdict}"
        case Ended(outcome=outcome, detail=detail):
            line = f"ended: {outcome}{f' - {detail}' if detail else ''}"
    return printable(line)


class LiveConsole:
    """The session as a picture that is redrawn four times a second."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._events: list[Event] = []
        self._clock = time.monotonic()
        self._live = Live(
            console=console, get_renderable=self._draw, refresh_per_second=4, transient=True
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Started):
            self._clock = time.monotonic()
        self._events.append(event)

    def finish(self, summary: Summary) -> None:
        if self._events:
            self._console.print(self._steps(record_of(self._events), 1000))
        self._console.print(closing(summary))

    def _draw(self) -> RenderableType:
        if not self._events:
            return Text("starting the sandbox …", style="dim")
        record = record_of(self._events)
        height = self._console.size.height
        parts = [
            self._header(record),
            self._steps(record, max(3, height // 3)),
            self._cell(max(3, height // 6)),
            self._last_output(record, max(3, height // 6)),
            self._footer(record),
        ]
        return Group(*parts)

    def _header(self, record: Record) -> RenderableType:
        task, config = record.started.task, record.started.config
        better = "higher" if task.metric.higher_is_better else "lower"
        return Text.assemble(
            (printable(task.id), "bold"),
            f"  {printable(task.metric.name)}, {better} is better   ",
            (f"{config['implementer']} + {config['ideator']}", "cyan"),
            f"   sandbox {record.started.sandbox.kind}",
        )

    def _steps(self, record: Record, most: int) -> RenderableType:
        table = Table(box=None, pad_edge=False, expand=True)
        for name in ("step", "action", "what", "time", "validation", "public"):
            table.add_column(name, no_wrap=True, ratio=1 if name == "what" else None)
        solutions = {solution.number: solution for solution in record.solutions}
        left_out = len(record.steps) - most
        if left_out > 0:
            table.add_row("", "", Text(f"… {left_out} earlier steps", style="dim"), "", "", "")
        for step in record.steps[-most:]:
            solution = solutions.get(step.solution or 0)
            scores = solution.scores if solution else Scores()
            is_best = solution is not None and solution.number in record.bests[-1:]
            table.add_row(
                str(step.number),
                Text(name_of(step.action), style=_style(step)),
                Text(printable(_gist(step))),
                duration(step.observation.duration_s),
                Text(str(scores.validation or ""), style="bold green" if is_best else ""),
                Text(str(scores.public or ""), style="bold green" if is_best else ""),
            )
        return table

    def _cell(self, lines: int) -> RenderableType:
        last = self._events[-1]
        if not isinstance(last, Decided) or not isinstance(last.decision.action, Execute):
            return Text("the next step is being decided …", style="dim")
        action = last.decision.action
        code = "\n".join(printable(action.code).splitlines()[:lines])
        return Panel(
            Syntax(code, action.language, background_color="default"),
            title=f"running step {last.step}",
            title_align="left",
        )

    def _last_output(self, record: Record, lines: int) -> RenderableType:
        if not record.steps:
            return Text("no output yet", style="dim")
        step = record.steps[-1]
        tail = "\n".join(printable(step.observation.text).splitlines()[-lines:])
        return Panel(Text(tail), title=f"step {step.number} brought", title_align="left")

    def _footer(self, record: Record) -> RenderableType:
        limits = msgspec.convert(record.started.config["limits"], Limits)
        asked = sum(isinstance(step.action, SeekHelp) for step in record.steps)
        left = max(0.0, limits.time_s - (time.monotonic() - self._clock))
        final = record.final
        best = scores_text(_guiding(final.scores)) if final else "none yet"
        return Text.assemble(
            ("best ", "dim"),
            (best, "bold green" if final else ""),
            ("   baseline ", "dim"),
            scores_text(_guiding(record.started.task.baseline)),
            ("   left ", "dim"),
            f"{limits.steps - len(record.steps)} steps, {limits.help_requests - asked} ideas, ",
            duration(left),
        )


def name_of(action: Action) -> str:
    """An action in a word or two."""
    match action:
        case Execute(language=language):
            return language
        case SeekHelp():
            return "seek help"
        case Finish():
            return "finish"
        case Malformed():
            return "unreadable"


def outcome_of(step: Step) -> str:
    """What came of a step, in one line."""
    observation = step.observation
    match step.action:
        case SeekHelp():
            return f"idea: {one_line(step.idea.action, 160)}" if step.idea else "no idea came"
        case Finish(reason=reason):
            return one_line(reason, 160) or "done"
        case Malformed(reason=reason):
            return one_line(reason, 160)
        case Execute():
            return f"{observation.status} after {observation.duration_s:.1f}s"


def _gist(step: Step) -> str:
    """What a step was about: an idea itself, or else why the implementer acted."""
    said = "" if step.idea else one_line(step.thought, 200)
    return said or outcome_of(step)


def _style(step: Step) -> str:
    if isinstance(step.action, SeekHelp):
        return "magenta"
    return "" if step.observation.status in ("ok", "told") else "red"


def scores_text(scores: Scores | Best | Baseline) -> str:
    """`validation 0.91, public 0.90`, naming only what is scored."""
    named = {
        "validation": scores.validation,
        "public": scores.public,
        "private": scores.private,
    }
    parts = [
        f"{name} {score:.6g}" if isinstance(score, float) else f"{name} {score}"
        for name, score in named.items()
        if score is not None
    ]
    return ", ".join(parts) or "unscored"


def _guiding(scores: Scores) -> Scores:
    """Without the private score: it is for the final report, not for whoever watches and helps."""
    return msgspec.structs.replace(scores, private=None)


def closing(summary: Summary) -> Text:
    """What came of the session, and where it lies."""
    if summary.best.solution is None:
        head = Text("no validated submission was produced", style="bold red")
    else:
        head = Text.assemble(("best ", "bold"), scores_text(summary.best))
    head.append(f"\nbaseline {scores_text(summary.baseline)}")
    head.append(
        f"\n{summary.steps} steps, {summary.help_requests} help requests, "
        f"{summary.improvements} ideas led to a new best; {duration(summary.duration_s)}"
    )
    for warning in summary.warnings:
        head.append(f"\nwarning: {printable(warning)}", style="yellow")
    head.append(f"\n{printable(summary.run)}")
    return head
