"""The file of an evaluation: a heading, then one JSON line a try, as it ends, never rewritten.

So an evaluation that was killed goes on where it was, and a further contender, state or idea can be
added to one that is done.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from mle_ideator.errors import UsageError
from mle_ideator.files import lock
from mle_ideator.rl.evaluation.values import Try
from mle_ideator.types import Value

T = TypeVar("T", bound=Value)

VERSION = 1


class Key(NamedTuple):
    """What is tried once."""

    contender: str
    state: str
    seed: int
    """The evaluation's."""
    place: int


class Heading(Value, frozen=True, kw_only=True):
    """What all tries of a file have in common."""

    evaluation: int
    """Version of the file's form."""
    setting: str
    """What rollouts are made with, in the caller's words."""
    attempts: int


def key_of(one: Try) -> Key:
    return Key(one.contender, one.state, one.seed, one.place)


@dataclass(frozen=True)
class Log:
    """What has been tried; with a file, there too."""

    descriptor: int | None = None
    tries: dict[Key, Try] = field(default_factory=dict)

    def append(self, one: Try) -> None:
        if self.descriptor is not None:
            _write(self.descriptor, one)
        self.tries[key_of(one)] = one

    def lacks(self, key: Key) -> bool:
        """Is there no result yet? What was masked is tried again."""
        found = self.tries.get(key)
        return found is None or found.masked


@contextmanager
def log_at(path: Path | None, setting: str, attempts: int) -> Iterator[Log]:
    """Go on with the file, or begin it; a last line that was being written is cut off.

    Raises `UsageError` if it is of another setting, is no such file, or if another process writes
    to it.
    """
    if path is None:
        yield Log()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if not lock(descriptor):
            raise UsageError(f"another process writes to {path}: wait for it, or name another one.")
        heading = Heading(evaluation=VERSION, setting=setting, attempts=attempts)
        yield Log(descriptor, _gone_on(descriptor, path, heading))
    finally:
        os.close(descriptor)


def _gone_on(descriptor: int, path: Path, heading: Heading) -> dict[Key, Try]:
    """What the file holds. One that holds less than a line is begun, if it may be one of ours."""
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if not whole:
        start = msgspec.json.encode(heading)
        if not start.startswith(content):
            raise UsageError(f"{path} is no file of an evaluation; name another one.")
        os.ftruncate(descriptor, 0)
        _write(descriptor, heading)
        return {}
    tries = _read(path, content[:whole].split(b"\n")[:-1], heading)
    os.ftruncate(descriptor, whole)
    return {key_of(one): one for one in tries}


def _read(path: Path, lines: list[bytes], wanted: Heading) -> list[Try]:
    _require_same(path, _decoded(path, 1, lines[0], Heading), wanted)
    return [_decoded(path, number, line, Try) for number, line in enumerate(lines[1:], start=2)]


def _decoded(path: Path, number: int, line: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(line, type=kind)
    except msgspec.MsgspecError as error:
        raise UsageError(f"{path}, line {number} is no line of an evaluation: {error}.") from error


def _require_same(path: Path, found: Heading, wanted: Heading) -> None:
    for name in found.__struct_fields__:
        was, now = getattr(found, name), getattr(wanted, name)
        if was != now:
            raise UsageError(
                f"{path} was begun with {name} {was!r}, this evaluation has {now!r}: results of "
                "both can not be compared; name another file."
            )


def _write(descriptor: int, line: Value) -> None:
    rest = memoryview(msgspec.json.encode(line) + b"\n")
    while rest:
        rest = rest[os.write(descriptor, rest) :]
