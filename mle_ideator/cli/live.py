"""The console on a terminal: the session as a picture."""

from __future__ import annotations

import time
from collections import deque
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
from mle_ideator.journal import Decided, Ended, Event, Resumed, Solved, Started, Stepped
from mle_ideator.limits import Limits
from mle_ideator.results import Summary
from mle_ideator.types import Execute, Scores, SeekHelp, Solution, Step

_ROWS = 1000
"""Steps that the table shows at most."""


class LiveConsole:
    """The session as a picture that is redrawn four times a second.

    Events are taken in as they come, so that drawing takes no longer late in a session.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._clock = time.monotonic()
        self._started: Started | None = None
        self._last: Event | None = None
        self._steps: deque[Step] = deque(maxlen=_ROWS)
        self._taken = self._asked = 0
        self._solutions: dict[int | None, Solution] = {}
        self._best: int | None = None
        self._live = Live(
            console=console, get_renderable=self._draw, refresh_per_second=4, transient=True
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def __call__(self, event: Event) -> None:
        match event:
            case Started():
                self._started, self._clock = event, time.monotonic()
            case Resumed(at_s=at_s):
                self._clock = time.monotonic() - at_s
            case Stepped(step=step):
                self._steps.append(step)
                self._taken += 1
                self._asked += isinstance(step.action, SeekHelp)
            case Solved(solution=solution, best=is_best):
                self._solutions[solution.number] = solution
                self._best = solution.number if is_best else self._best
            case Ended(solution=final):
                self._best = final
        self._last = event

    def finish(self, summary: Summary) -> None:
        if self._started:
            self._console.print(self._table(_ROWS))
        self._console.print(closing(summary))

    def _draw(self) -> RenderableType:
        if self._started is None:
            return Text("starting the sandbox …", style="dim")
        height = self._console.size.height
        parts = [
            self._header(self._started),
            self._table(max(3, height // 3)),
            self._cell(max(3, height // 6)),
            self._last_output(max(3, height // 6)),
            self._footer(self._started),
        ]
        return Group(*parts)

    def _header(self, started: Started) -> RenderableType:
        task, config = started.task, started.config
        better = "higher" if task.metric.higher_is_better else "lower"
        return Text.assemble(
            (printable(task.id), "bold"),
            f"  {printable(task.metric.name)}, {better} is better   ",
            (f"{config['implementer']} + {config['ideator']}", "cyan"),
            f"   sandbox {started.sandbox.kind}",
        )

    def _table(self, most: int) -> RenderableType:
        table = Table(box=None, pad_edge=False, expand=True)
        for name in ("step", "action", "what", "time", "validation", "public"):
            table.add_column(name, no_wrap=True, ratio=1 if name == "what" else None)
        shown = list(self._steps)[-most:]
        left_out = self._taken - len(shown)
        if left_out > 0:
            table.add_row("", "", Text(f"… {left_out} earlier steps", style="dim"), "", "", "")
        for step in shown:
            solution = self._solutions.get(step.solution)
            scores = solution.scores if solution else Scores()
            is_best = solution is not None and solution.number == self._best
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
        last = self._last
        if not isinstance(last, Decided) or not isinstance(last.decision.action, Execute):
            return Text("the next step is being decided …", style="dim")
        action = last.decision.action
        code = "\n".join(printable(action.code).splitlines()[:lines])
        return Panel(
            Syntax(code, action.language, background_color="default"),
            title=f"running step {last.step}",
            title_align="left",
        )

    def _last_output(self, lines: int) -> RenderableType:
        if not self._steps:
            return Text("no output yet", style="dim")
        step = self._steps[-1]
        tail = "\n".join(printable(step.observation.text).splitlines()[-lines:])
        return Panel(Text(tail), title=f"step {step.number} brought", title_align="left")

    def _footer(self, started: Started) -> RenderableType:
        limits = msgspec.convert(started.config["limits"], Limits)
        left = max(0.0, limits.time_s - (time.monotonic() - self._clock))
        best = self._solutions.get(self._best)
        return Text.assemble(
            ("best ", "dim"),
            (
                scores_text(guiding(best.scores)) if best else "none yet",
                "bold green" if best else "",
            ),
            ("   baseline ", "dim"),
            scores_text(guiding(started.task.baseline)),
            ("   left ", "dim"),
            f"{limits.steps - self._taken} steps, {limits.help_requests - self._asked} ideas, ",
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
