"""Everything that happened in a session, one JSON line an event, in order, never rewritten.

The journal is the only source of truth: console, report, summary and training states are read from
it. Each event reaches the file before the session goes on, so a killed run keeps all but the event
that was being written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from mle_ideator import __version__
from mle_ideator.errors import UsageError
from mle_ideator.files import lock
from mle_ideator.types import (
    Decision,
    Grade,
    HelpRequest,
    Outcome,
    Remaining,
    SandboxInfo,
    Scores,
    Solution,
    Step,
    Task,
    Usage,
    Value,
)


class Started(Value, frozen=True, tag="started", kw_only=True):
    """The session begins."""

    version: str
    started_at: str
    """UTC, ISO 8601."""
    config: dict[str, Any]
    task: Task
    sandbox: SandboxInfo


class Resumed(Value, frozen=True, tag="resumed", kw_only=True):
    """A session that was broken off goes on: with a new kernel, and an action not carried out
    decided anew."""

    at_s: float
    """Time that passed in between does not count."""
    resumed_at: str
    """UTC, ISO 8601."""
    sandbox: SandboxInfo


class Decided(Value, frozen=True, tag="decided", kw_only=True):
    """The implementer chose an action; it is about to be carried out."""

    at_s: float
    step: int
    decision: Decision


class Asked(Value, frozen=True, tag="asked", kw_only=True):
    """The ideator is about to be asked: what a later reader could not tell of the situation."""

    at_s: float
    step: int
    request: HelpRequest
    code: str | None
    """The workspace's solution.py as it stood."""
    remaining: Remaining


class Spent(Value, frozen=True, tag="spent", kw_only=True):
    """What calls of the implementer's model used that brought no answer."""

    at_s: float
    usage: Usage


class Stepped(Value, frozen=True, tag="stepped", kw_only=True):
    """An action was carried out."""

    at_s: float
    step: Step
    ideator_usage: Usage = Usage()


class Solved(Value, frozen=True, tag="solved", kw_only=True):
    """A step made a valid solution."""

    at_s: float
    solution: Solution
    remarks: tuple[str, ...] = ()
    best: bool
    """Is it the best one so far, under the selection policy?"""


class Rejected(Value, frozen=True, tag="rejected", kw_only=True):
    """A step wrote a submission that is not valid."""

    at_s: float
    step: int
    grade: Grade


class Warned(Value, frozen=True, tag="warned", kw_only=True):
    """Something that the reader should know and that did not end the session."""

    at_s: float
    message: str


class Rerun(Value, frozen=True, tag="rerun", kw_only=True):
    """A solution was run again in a clean sandbox."""

    at_s: float
    solution: int
    reproduced: bool
    """It ran to its end, and its submission is valid."""
    scores: Scores = Scores()
    detail: str = ""


class Refitted(Value, frozen=True, tag="refitted", kw_only=True):
    """The final solution was fitted once more, to every labelled row of a person's own data."""

    at_s: float
    solution: int
    detail: str = ""
    """Why that failed; empty if its submission is valid."""


class Ended(Value, frozen=True, tag="ended", kw_only=True):
    """The session is over."""

    at_s: float
    outcome: Outcome
    solution: int | None
    """Number of the final solution."""
    detail: str = ""


V = TypeVar("V", bound=Value)


def writable(value: V) -> V:
    """The value as a later reader will get it, lone surrogates replaced.

    A model's JSON may hold some, UTF-8 may not. Raises `ValidationError` if the value holds what
    its type does not allow, so that nothing unreadable reaches a journal.
    """
    try:
        return msgspec.json.decode(msgspec.json.encode(value), type=type(value))
    except UnicodeEncodeError:
        return msgspec.convert(_replaced(msgspec.to_builtins(value)), type(value))


def _encoded(event: Event) -> bytes:
    """As JSON; only an event that can not be written is looked at twice."""
    try:
        return msgspec.json.encode(event)
    except UnicodeEncodeError:
        return msgspec.json.encode(writable(event))


def _replaced(data: Any) -> Any:
    match data:
        case str():
            return data.encode("utf-8", "replace").decode()
        case dict():
            return {_replaced(key): _replaced(item) for key, item in data.items()}
        case list() | tuple():
            return [_replaced(item) for item in data]
    return data


Event = (
    Started
    | Resumed
    | Decided
    | Asked
    | Spent
    | Stepped
    | Solved
    | Rejected
    | Warned
    | Rerun
    | Refitted
    | Ended
)
Listener = Callable[[Event], None]
FILE = "journal.jsonl"


class StillWritten(UsageError):
    """The session of that journal is being run."""


class Journal:
    """Appends events to a file and tells listeners of them.

    Raises `StillWritten` while another one, of whatever process, does so.
    """

    def __init__(self, path: Path, listeners: Iterable[Listener] = ()) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._file = os.open(path, flags, 0o600)
        if not lock(self._file):
            os.close(self._file)
            raise StillWritten(f"the session in {path.parent} is still run by another process.")
        _cut_torn_line(self._file)
        self._listeners = tuple(listeners)

    def append(self, event: Event) -> None:
        line = memoryview(_encoded(event) + b"\n")
        while line:
            line = line[os.write(self._file, line) :]
        for listener in self._listeners:
            listener(event)

    def close(self) -> None:
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _cut_torn_line(file: int) -> None:
    """What a crash left of an event that was being written."""
    with open(file, "rb", closefd=False) as written:
        content = written.read()
    os.ftruncate(file, content.rfind(b"\n") + 1)


def read_journal(run: Path) -> list[Event]:
    """All events of a run folder (or of the journal file itself).

    A last line that was cut by a crash is left out; any other unreadable line is a `UsageError`.
    """
    path = run / FILE if run.is_dir() else run
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise UsageError(f"{run} holds no journal of a run ({error.strerror}).") from error
    events = []
    for number, line in enumerate(lines[:-1], start=1):
        try:
            events.append(msgspec.json.decode(line, type=Event))
        except msgspec.MsgspecError as error:
            reason = f"{path}, line {number} is no event: {error}{_of_another_version(lines[0])}."
            raise UsageError(reason) from error
    if not events or not isinstance(events[0], Started):
        raise UsageError(f"{path} does not begin with the start of a session.")
    return events


def _of_another_version(start: bytes) -> str:
    """What to do, if the first line tells that another version wrote the journal."""
    try:
        version = msgspec.json.decode(start, type=dict[str, Any]).get("version", __version__)
    except msgspec.MsgspecError:
        return ""
    if version == __version__:
        return ""
    return f" (mle-ideator {version} wrote it, this is {__version__}: read it with that version)"
