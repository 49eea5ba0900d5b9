"""TensorBoard's event files, in `logs/` of the run folder: for `tensorboard --logdir RUNS`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mle_ideator.rl.training.logs.config import LogConfig
from mle_ideator.rl.training.logs.seam import Table, package

FOLDER = "logs"


class TensorBoardLogs:
    """Implements `Logs`. What an earlier process told of later steps is hidden on a resume."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def text(self, step: int, name: str, table: Table) -> None:
        self._writer.add_text(name, table.markdown(), step)

    def close(self) -> None:
        self._writer.close()


def opened(run: Path, config: LogConfig, settings: Mapping[str, Any], step: int) -> TensorBoardLogs:
    writer = package("tensorboardX", "tensorboardX").SummaryWriter
    return TensorBoardLogs(writer(str(run / FOLDER), purge_step=step + 1 if step else None))
