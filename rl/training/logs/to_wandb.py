"""Weights & Biases; with `WANDB_MODE=offline` in `wandb/` of the run folder, without a server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mle_ideator.rl.training.logs.config import LogConfig
from mle_ideator.rl.training.logs.seam import Table, listed, package

_ID = "wandb.id"
"""File in the run folder with the run's id there, by which a resume finds it."""


class WandbLogs:
    """Implements `Logs`. Steps that were told already are told again, and it drops them."""

    def __init__(self, wandb: Any, run: Any) -> None:
        self._wandb = wandb
        self._run = run

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        self._run.log(dict(metrics), step=step)

    def text(self, step: int, name: str, table: Table) -> None:
        rows = self._wandb.Table(columns=list(table.columns), data=listed(table.rows))
        self._run.log({name: rows}, step=step)

    def close(self) -> None:
        self._run.finish()


def opened(run: Path, config: LogConfig, settings: Mapping[str, Any], step: int) -> WandbLogs:
    wandb = package("wandb", "wandb")
    known = run / _ID
    begun = wandb.init(
        project=config.project,
        name=config.name or run.resolve().name,
        config=dict(settings),
        dir=str(run),
        id=known.read_text().strip() if step and known.exists() else None,
        resume="allow" if step else None,
    )
    known.write_text(begun.id)
    return WandbLogs(wandb, begun)
