"""`metrics.jsonl` and `texts.jsonl` of a run: a JSON line a step, written as the step ends."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from mle_ideator.errors import UsageError
from mle_ideator.files import replace_file
from mle_ideator.rl.training.logs.seam import Table

METRICS, TEXTS = "metrics.jsonl", "texts.jsonl"


class LineLogs:
    """Implements `Logs`. A line that a crash cut is not there when the run goes on."""

    def __init__(self, run: Path, step: int = 0) -> None:
        """Go on after `step`: what stands there of later ones is cut off."""
        run.mkdir(parents=True, exist_ok=True)
        self._run = run
        self._files: dict[str, int] = {}
        self.truncate(step)

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        known = {name: value if isfinite(value) else None for name, value in metrics.items()}
        self._append(METRICS, {"step": step, **known})

    def text(self, step: int, name: str, table: Table) -> None:
        self._append(TEXTS, {"step": step, "name": name, **msgspec.to_builtins(table)})

    def truncate(self, step: int) -> None:
        """Leave only the lines of steps up to this one. Raises `UsageError` for other content."""
        self.close()
        for name in (METRICS, TEXTS):
            path = self._run / name
            if path.exists():
                kept = b"".join(line for number, line in _lines(path) if number <= step)
                if kept != path.read_bytes():
                    replace_file(path, kept)

    def close(self) -> None:
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files = {}

    def _append(self, name: str, line: Mapping[str, Any]) -> None:
        if name not in self._files:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            self._files[name] = os.open(self._run / name, flags, 0o644)
        rest = memoryview(msgspec.json.encode(line) + b"\n")
        while rest:
            rest = rest[os.write(self._files[name], rest) :]


def metrics_of(run: Path) -> list[dict[str, float | None]]:
    """The steps of a run, in order, also while it goes on; `None` is what was no finite number.

    Raises `UsageError` if there are none.
    """
    path = run / METRICS
    if not path.is_file():
        raise UsageError(f"{run} is no run of `train`: it has no {METRICS}.")
    return [msgspec.json.decode(line) for _, line in _lines(path)]


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Each whole line and its step. Raises `UsageError` for a line that is none of ours."""
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], start=1):
        try:
            step = msgspec.json.decode(line)["step"]
        except (msgspec.MsgspecError, TypeError, KeyError) as error:
            raise UsageError(
                f"{path}, line {number} is no step of a run: {line[:60]!r}."
            ) from error
        yield step, line + b"\n"
