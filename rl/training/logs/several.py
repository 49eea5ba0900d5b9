"""All logs of a run as one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import Any

from mle_ideator.errors import UsageError, unknown
from mle_ideator.rl.training.logs.config import LogConfig
from mle_ideator.rl.training.logs.lines import LineLogs
from mle_ideator.rl.training.logs.seam import Logs, Opened, Table

_HERE = "mle_ideator.rl.training.logs"
TRACKERS: dict[str, str] = {
    "tensorboard": f"{_HERE}.to_tensorboard",
    "trackio": f"{_HERE}.to_trackio",
    "wandb": f"{_HERE}.to_wandb",
    "mlflow": f"{_HERE}.to_mlflow",
}
_IF_THERE = ("tensorboard",)
"""The default: a run does without it where it is not installed, and says so."""


class SeveralLogs:
    """Implements `Logs`. The lines come first; a tracker that fails is told of once, and left out:
    no run ends because a server for its curves did."""

    def __init__(self, lines: LineLogs, told: Callable[[str], None]) -> None:
        self._lines = lines
        self._trackers: dict[str, Logs] = {}
        self._told = told

    def add(self, name: str, tracker: Logs) -> None:
        self._trackers[name] = tracker

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        self._lines.write(step, metrics)
        finite = {name: value for name, value in metrics.items() if isfinite(value)}
        self._each("write", step, finite)

    def text(self, step: int, name: str, table: Table) -> None:
        self._lines.text(step, name, table)
        self._each("text", step, name, table)

    def close(self) -> None:
        self._lines.close()
        self._each("close")
        self._trackers = {}

    def _each(self, method: str, *arguments: Any) -> None:
        for name, tracker in list(self._trackers.items()):
            try:
                with redirect_stdout(sys.stderr):  # standard output is for results
                    getattr(tracker, method)(*arguments)
            except Exception as error:  # whatever the tracker's package raises
                del self._trackers[name]
                self._told(f"{name} is left out from here on: {type(error).__name__}: {error}")


def open_logs(
    run: Path,
    config: LogConfig,
    settings: Mapping[str, Any],
    step: int = 0,
    told: Callable[[str], None] = lambda _: None,
) -> SeveralLogs:
    """Log the run in this folder, going on after `step`; `settings` are its config in plain values.

    `told` hears of what is not there or fails. Raises `UsageError` for an unknown tracker, and for
    one that was asked for and is not installed or can not be opened.
    """
    for name in config.to:
        if name not in TRACKERS:
            raise UsageError(unknown("tracker", name, TRACKERS))
    logs = SeveralLogs(LineLogs(run, step), told)
    for name in config.to:
        try:
            logs.add(name, _opened(name, run, config, settings, step))
        except UsageError as error:
            if name not in _IF_THERE:
                logs.close()
                raise
            told(f"{error}; the run goes on without {name}.")
    return logs


def _opened(
    name: str, run: Path, config: LogConfig, settings: Mapping[str, Any], step: int
) -> Logs:
    opened: Opened = import_module(TRACKERS[name]).opened
    try:
        with redirect_stdout(sys.stderr):
            return opened(run, config, settings, step)
    except UsageError:
        raise
    except Exception as error:  # whatever the tracker's package raises
        raise UsageError(f"logs: {name} can not be opened: {error}") from error
