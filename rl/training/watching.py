"""Tells the steps of a run to whoever is to know of them, and ends a run that can not recover."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import msgspec

from mle_ideator.rl.training.config import TrainConfig
from mle_ideator.rl.training.guards import Guards
from mle_ideator.rl.training.listening import Listener
from mle_ideator.rl.training.logs import Logs, open_logs
from mle_ideator.types import Value

WATCH = "watch.json"
"""In a checkpoint's folder."""
_COUNTED = ("executions", "cache_hits")


class _Watched(Value, frozen=True):
    """What goes with a checkpoint."""

    step: int
    guards: dict[str, Any]
    counted: dict[str, float]


class Watcher:
    """Tells the steps of a run to its logs, its guards and its listener."""

    def __init__(self, config: TrainConfig, run: Path, listener: Listener, stop: Event) -> None:
        self._config, self._run, self._stop = config, run, stop
        self.listener = listener
        self.why = ""
        """Why the run was ended."""
        self._guards = Guards(config.guards)
        self._steps = 0
        self._before = dict.fromkeys(_COUNTED, 0.0)
        """What earlier processes counted."""
        self._counted = dict(self._before)
        self._logs: Logs | None = None

    @contextmanager
    def logs(self) -> Iterator[None]:
        settings = msgspec.to_builtins(self._config)
        told = self.listener.said
        logs = open_logs(self._run, self._config.logs, settings, self._steps, told)
        with closing(logs):
            self._logs = logs
            yield

    def step(self, step: int, metrics: Mapping[str, float]) -> bool:
        """One is done; is it to be the last one?"""
        self._steps = step
        self._counted = {name: self._before[name] + metrics.get(name, 0.0) for name in _COUNTED}
        metrics = {**metrics, **self._counted}
        if self._logs is not None:
            self._logs.write(step, metrics)
        self.listener.step(step, self._config.steps, metrics)
        alarms = self._guards.look(step, metrics)
        for alarm in alarms:
            self.listener.said(alarm.text)
        stops = next((alarm.text for alarm in alarms if alarm.stops), "")
        self.why = stops or ("interrupted" if self._stop.is_set() else "")
        return bool(self.why)

    def save(self, file: Path) -> None:
        watched = _Watched(self._steps, self._guards.state_dict(), self._counted)
        file.write_bytes(msgspec.json.encode(watched))

    def load(self, file: Path) -> None:
        watched = msgspec.json.decode(file.read_bytes(), type=_Watched)
        self._steps = watched.step
        self._guards.load_state_dict(watched.guards)
        self._before = self._counted = watched.counted
