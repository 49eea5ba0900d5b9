"""MLflow: to the server that `MLFLOW_TRACKING_URI` names, else to `mlflow.db` in the run folder."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mle_ideator.rl.training.logs.config import LogConfig
from mle_ideator.rl.training.logs.seam import Table, package

_ID = "mlflow.id"
"""File in the run folder with the run's id there, by which a resume finds it."""


class MlflowLogs:
    """Implements `Logs`. On a resume, steps that were told already stand there twice."""

    def __init__(self, mlflow: Any, client: Any, run: str) -> None:
        self._metric = mlflow.entities.Metric
        self._client = client
        self._run = run

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        now = int(1000 * time.time())
        told = [self._metric(name, value, now, step) for name, value in metrics.items()]
        self._client.log_batch(self._run, metrics=told)

    def text(self, step: int, name: str, table: Table) -> None:
        self._client.log_text(self._run, table.markdown(), f"{name}/step-{step:06d}.md")

    def close(self) -> None:
        self._client.set_terminated(self._run)


def opened(run: Path, config: LogConfig, settings: Mapping[str, Any], step: int) -> MlflowLogs:
    mlflow = package("mlflow", "mlflow")
    server = os.environ.get("MLFLOW_TRACKING_URI")
    client = mlflow.MlflowClient(server or f"sqlite:///{run.resolve()}/mlflow.db")
    known = run / _ID
    if step and known.exists():
        return MlflowLogs(mlflow, client, known.read_text().strip())
    found = client.get_experiment_by_name(config.project)
    files = None if server else f"file://{run.resolve()}/mlflow"
    experiment = found.experiment_id if found else client.create_experiment(config.project, files)
    begun = client.create_run(experiment, run_name=config.name or run.resolve().name)
    known.write_text(begun.info.run_id)
    for name, value in _flat(settings):
        client.log_param(begun.info.run_id, name, value)
    return MlflowLogs(mlflow, client, begun.info.run_id)


def _flat(settings: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Nested settings under dotted names."""
    pairs: list[tuple[str, str]] = []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            pairs += _flat(value, f"{prefix}{key}.")
        else:
            pairs.append((f"{prefix}{key}", str(value)))
    return pairs
