"""The seam between a trainer and whatever keeps what it tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from mle_ideator.errors import UsageError
from mle_ideator.rl.training.logs.config import LogConfig
from mle_ideator.types import Value


class Table(Value, frozen=True):
    """Words of one step, for instance some answers and what they earned."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        lines = [self.columns, ("---",) * len(self.columns), *self.rows]
        return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


class Logs(Protocol):
    """Steps come in order; after a resume those since the checkpoint come again."""

    def write(self, step: int, metrics: Mapping[str, float]) -> None: ...

    def text(self, step: int, name: str, table: Table) -> None: ...

    def close(self) -> None: ...


class Opened(Protocol):
    """What each tracker's module has as `opened`."""

    def __call__(
        self, run: Path, config: LogConfig, settings: Mapping[str, Any], step: int
    ) -> Logs:
        """Log the run in this folder, which has been logged up to `step`, and no further."""
        ...


def package(name: str, install: str) -> Any:
    """Import what a tracker needs. Raises `UsageError` with the command that installs it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise UsageError(
            f"logs: {name} can not be imported ({error}); install it with: pip install {install}"
        ) from error


def listed(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """As packages take them."""
    return [list(row) for row in rows]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "<br>")
