"""The buffer on disk: a save that is never read half, and a log of all that was done since.

    FOLDER/buffer.npz    the last save: arrays, nothing pickled; names the log that goes on from it
    FOLDER/log-N.jsonl   what was called since, one line a call, each written before it is done
    FOLDER/lock          held by the process that writes

The buffer does the same for the same calls, so the log done again on the save is the buffer as it
was, its random state included: what was observed is not lost with the process, and a draw that was
made is not made twice. Against a loss of power saves are safe; the last lines of a log may not be.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import numpy as np

from mle_ideator.errors import UsageError
from mle_ideator.files import lock, signature
from mle_ideator.rl.buffer import curriculum as pure
from mle_ideator.rl.buffer.buffer import Drawn, EvolvingBuffer
from mle_ideator.rl.buffer.config import CurriculumConfig
from mle_ideator.rl.values import StateCard
from mle_ideator.types import Value

SAVE = "buffer.npz"
_LONG_LOG = 10_000
"""Calls after which opening saves, so that the next one is quick again."""


class Adding(Value, frozen=True, tag="add"):
    card: StateCard


class Drawing(Value, frozen=True, tag="draw"):
    count: int


class Observing(Value, frozen=True, tag="observe"):
    state: str
    rewards: tuple[float | None, ...]
    invalid: int = 0


class Returning(Value, frozen=True, tag="return"):
    """All retired states."""


Call = Adding | Drawing | Observing | Returning


def save(buffer: EvolvingBuffer, folder: Path) -> None:
    """Write a buffer into a folder, as with a checkpoint. Raises `UsageError` if it is in use."""
    with _Folder(folder) as target:
        target.save(buffer.state_dict())


def load(folder: Path) -> EvolvingBuffer:
    """The buffer as it stands in a folder, also while another process goes on writing there.

    Raises `UsageError` if there is none, or if it can not be read.
    """
    while True:
        before = signature(folder / SAVE)
        if before is None:
            raise UsageError(f"{folder} holds no buffer ({SAVE} is missing).")
        buffer = EvolvingBuffer()
        _read_into(buffer, folder)
        if signature(folder / SAVE) == before:
            return buffer


class KeptBuffer(EvolvingBuffer):
    """An evolving buffer that outlives its process: opened again, it goes on where it was.

    Raises `UsageError` while another process has it open. A call that can not be written down
    (`OSError`) is not done.
    """

    def __init__(self, folder: Path, config: CurriculumConfig | None = None, seed: int = 0) -> None:
        """With what the folder holds; else empty. Another config than it had is put in force."""
        super().__init__(config, seed)
        self._folder = _Folder(folder)
        try:
            self._go_on(config)
        except BaseException:
            self._folder.close()
            raise

    def _go_on(self, config: CurriculumConfig | None) -> None:
        if not (self._folder.path / SAVE).exists():
            self.save()
            return
        self._folder.number, calls = _read_into(self, self._folder.path)
        if calls > _LONG_LOG:
            self.save()
        else:
            self._folder.open_log()
        if config is not None and config != self.config:
            self.reconfigure(config)

    def add(self, card: StateCard) -> int | None:
        if self.rows.find(card.id) is None:  # a merged one changes nothing that has to be kept
            self._folder.append(Adding(card))
        return super().add(card)

    def draw(self, count: int) -> list[Drawn]:
        self._folder.append(Drawing(count))
        return super().draw(count)

    def observe(self, state: str, rewards: Sequence[float | None], invalid: int = 0) -> bool:
        pure.read_group(rewards, invalid)
        self.rows.find(state)
        plain = tuple(None if r is None else float(r) for r in rewards)
        self._folder.append(Observing(state, plain, invalid))
        return super().observe(state, rewards, invalid)

    def return_retired(self) -> int:
        self._folder.append(Returning())
        return super().return_retired()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self.save()

    def reconfigure(self, config: CurriculumConfig) -> None:
        super().reconfigure(config)
        self.save()

    def save(self) -> None:
        """Begin a new log; what it took to get here is no longer needed."""
        self._folder.save(self.state_dict())

    def close(self) -> None:
        """Let others open it. Nothing has to be saved before."""
        self._folder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class _Folder:
    """Writes a folder, as the only process."""

    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.number = max(_numbers(path), default=0)
        self._log: int | None = None
        held = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._lock: int | None = held
        if not lock(held):
            os.close(held)
            raise UsageError(f"the buffer in {path} is in use by another process.")

    def save(self, state: Mapping[str, Any]) -> None:
        """Put a save in the place of the last one, whole or not at all; then a new log."""
        part = self.path / f"{SAVE}.part"
        with part.open("wb") as file:
            np.savez(file, **state, log=np.array(self.number + 1))
            file.flush()
            os.fsync(file.fileno())
        part.replace(self.path / SAVE)
        self.number += 1
        self.open_log()
        for number in _numbers(self.path):
            if number != self.number:
                _log(self.path, number).unlink(missing_ok=True)

    def open_log(self) -> None:
        """Go on with the log of the last save, without what a crash left of a line."""
        self._close_log()
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        path = _log(self.path, self.number)
        self._log = os.open(path, flags, 0o600)
        self._size = path.read_bytes().rfind(b"\n") + 1
        os.ftruncate(self._log, self._size)

    def append(self, call: Call) -> None:
        """Write one line. If that fails (a full disk) nothing of it is left."""
        if self._log is None:
            raise UsageError(f"the buffer in {self.path} was closed.")
        line = memoryview(msgspec.json.encode(call) + b"\n")
        size = self._size + len(line)
        try:
            while line:
                line = line[os.write(self._log, line) :]
        except OSError:
            os.ftruncate(self._log, self._size)
            raise
        self._size = size

    def _close_log(self) -> None:
        if self._log is not None:
            os.close(self._log)
            self._log = None

    def close(self) -> None:
        self._close_log()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _log(folder: Path, number: int) -> Path:
    return folder / f"log-{number}.jsonl"


def _numbers(folder: Path) -> list[int]:
    """Of the logs that are there."""
    names = (path.stem.removeprefix("log-") for path in folder.glob("log-*.jsonl"))
    return [int(name) for name in names if name.isdigit()]


def _read_into(buffer: EvolvingBuffer, folder: Path) -> tuple[int, int]:
    """Make a buffer what the folder holds. Returns the number of its log and how long that is."""
    path = folder / SAVE
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as state:
            EvolvingBuffer.load_state_dict(buffer, state)
            number = int(state["log"])
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        reason = f"{path} can not be read ({error}); put another save in its place."
        raise UsageError(reason) from error
    calls = _read_log(_log(folder, number))
    for call in calls:
        _do(buffer, call)
    return number, len(calls)


def _read_log(path: Path) -> list[Call]:
    """All calls; a last line that a crash cut is left out. Raises `UsageError` for another one."""
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    calls: list[Call] = []
    for number, line in enumerate(lines, start=1):
        try:
            calls.append(msgspec.json.decode(line, type=Call))
        except msgspec.MsgspecError as error:
            raise UsageError(f"{path}, line {number} can not be read: {error}.") from error
    return calls


def _do(buffer: EvolvingBuffer, call: Call) -> None:
    """Do again what was called, without writing it again."""
    match call:
        case Adding():
            EvolvingBuffer.add(buffer, call.card)
        case Drawing():
            EvolvingBuffer.draw(buffer, call.count)
        case Observing():
            EvolvingBuffer.observe(buffer, call.state, call.rewards, call.invalid)
        case Returning():
            EvolvingBuffer.return_retired(buffer)
