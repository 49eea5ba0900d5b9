"""The console of a running session: a function of its journal, live on a terminal, lines elsewhere.

A console is a journal listener. It holds the events it was told and draws from them; nothing in a
session waits for it or depends on it.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Protocol, Self, TextIO

from rich.console import Console
from rich.text import Text

from mle_ideator.cli.wording import closing, line_of
from mle_ideator.journal import Event
from mle_ideator.results import Summary


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


def console_for(stream: TextIO, *, lines: bool = False) -> SessionConsole:
    """A live view if the stream is a terminal, plain lines otherwise or where `lines` is set."""
    console = _Patient(file=stream, highlight=False, soft_wrap=not stream.isatty())
    if lines or not console.is_terminal:
        return PlainConsole(console)
    from mle_ideator.cli.live import LiveConsole

    return LiveConsole(console)


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
