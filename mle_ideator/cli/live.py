"""The console on a terminal: the session as a picture."""

from __future__ import annotations

import time
from typing import Self

import msgspec
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from mle_ideator.cli.text import duration, one_line, printable
from mle_ideator.cli.wording import closing, guiding, name_of, outcome_of, scores_text
from mle_ideator.journal import Decided, Event, Started
from mle_ideator.limits import Limits
from mle_ideator.results import Record, Summary, record_of
from mle_ideator.types import Execute, Scores, SeekHelp, Step


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
        best = scores_text(guiding(final.scores)) if final else "none yet"
        return Text.assemble(
            ("best ", "dim"),
            (best, "bold green" if final else ""),
            ("   baseline ", "dim"),
            scores_text(guiding(record.started.task.baseline)),
            ("   left ", "dim"),
            f"{limits.steps - len(record.steps)} steps, {limits.help_requests - asked} ideas, ",
            duration(left),
        )


def _gist(step: Step) -> str:
    """What a step was about: an idea itself, or else why the implementer acted."""
    said = "" if step.idea else one_line(step.thought, 200)
    return said or outcome_of(step)


def _style(step: Step) -> str:
    if isinstance(step.action, SeekHelp):
        return "magenta"
    return "" if step.observation.status in ("ok", "told") else "red"
