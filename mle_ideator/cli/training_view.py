"""What is seen of a training run: a bar that says what is waited for, and a line a step."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Event
from types import FrameType, TracebackType
from typing import Self

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from mle_ideator.benchmarks.runner.progress import Done
from mle_ideator.benchmarks.runner.progress import Event as SessionEvent
from mle_ideator.cli.matrix import name_of
from mle_ideator.plain_text import printable
from mle_ideator.rl.training.listening import Listener
from mle_ideator.rl.training.running import Trained
from mle_ideator.rl.training.warm_up.config import Progress as Warming
from mle_ideator.rl.training.warm_up.config import WarmedUp

_SHOWN = (
    ("reward", "reward {:+.2f}"),
    ("invalid_rate", "invalid {:.0%}"),
    ("zero_variance", "without variance {:.0%}"),
    ("entropy", "entropy {:.2f}"),
    ("kl", "kl {:.3f}"),
    ("executions", "{:.0f} executed"),
    ("cache_hits", "{:.0f} remembered"),
    ("wait_s", "waited {:.1f} s"),
)


class TrainingConsole(Listener):
    """Lines on stderr; on a terminal a bar below them."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        columns = (
            TextColumn("{task.description}", markup=False),
            *(BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()),
        )
        self._bar = Progress(*columns, console=self._console, transient=True)
        self._bar.disable = not self._console.is_terminal
        self._task = self._bar.add_task("beginning", total=None)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.stop()

    # ---------------------------------------------------------------------------- as a listener

    def said(self, text: str) -> None:
        self._console.print(printable(text), markup=False)

    def doing(self, what: str) -> None:
        self._bar.update(self._task, description=what)

    def session(self, event: SessionEvent) -> None:
        if isinstance(event, Done) and not event.before:
            self.said(f"a session: {name_of(event.cell)}, {event.wall_s:.0f} s")

    def warming(self, progress: Warming) -> None:
        done, planned = progress.done, progress.planned
        self._bar.update(
            self._task, description=f"warm-up: {progress.phase}", completed=done, total=planned
        )
        if progress.note:
            self.said(progress.note)
        if done == planned:
            values = ", ".join(f"{name} {value:.3f}" for name, value in progress.values.items())
            self.said(f"warm-up: {progress.phase} {done}" + (f", {values}" if values else ""))

    def step(self, step: int, steps: int, metrics: Mapping[str, float]) -> None:
        self._bar.update(self._task, completed=step, total=steps)
        shown = [form.format(metrics[name]) for name, form in _SHOWN if name in metrics]
        self.said(f"[{step}/{steps}] {', '.join(shown)}")

    def finish(self, trained: Trained, *, as_json: bool) -> None:
        if as_json:
            typer.echo(msgspec.json.encode(trained).decode())
            return
        typer.echo(
            f"{trained.steps} steps, reward {_said(trained.reward_first)} → "
            f"{_said(trained.reward_last)}, {trained.executions} rollouts executed, "
            f"{trained.cache_hits} remembered\n"
            f"use it: mle-ideator serve --ideator hf:{trained.checkpoint}"
        )
        if trained.stopped:
            self.said(f"stopped: {trained.stopped}; mle-ideator train --resume {trained.run}")


@contextmanager
def stopping(console: TrainingConsole) -> Iterator[Event]:
    """The first Ctrl-C or SIGTERM ends the run after the step under way, the second one at once."""
    stop = Event()

    def heard(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        console.said("ending after this step; once more ends at once")

    numbers = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) != signal.SIG_IGN]
    before = {number: signal.signal(number, heard) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def warmed_line(warmed: WarmedUp) -> str:
    """What came of a warm-up, for a person."""
    share = warmed.answers.well_formed_share
    formed = "" if share is None else f", {share:.0%} of its answers are well-formed"
    return (
        f"{warmed.ideas.kept} ideas of {warmed.states} help states, loss {warmed.loss_first:.2f} → "
        f"{warmed.loss_last:.2f}{formed}\nuse it: mle-ideator serve --ideator hf:{warmed.model}"
    )


def _said(reward: float | None) -> str:
    return "none" if reward is None else f"{reward:+.3f}"
