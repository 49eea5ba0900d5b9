"""Trackio: curves kept on this machine, or in a Space on Hugging Face; see `trackio show`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mle_ideator.rl.training.logs.config import LogConfig
from mle_ideator.rl.training.logs.seam import Table, listed, package


class TrackioLogs:
    """Implements `Logs`. Where it keeps them is the business of its own environment variables."""

    def __init__(self, trackio: Any) -> None:
        self._trackio = trackio

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        self._trackio.log(dict(metrics), step=step)

    def text(self, step: int, name: str, table: Table) -> None:
        import pandas as pd

        frame = pd.DataFrame(listed(table.rows), columns=list(table.columns))
        self._trackio.log({name: self._trackio.Table(dataframe=frame)}, step=step)

    def close(self) -> None:
        self._trackio.finish()


def opened(run: Path, config: LogConfig, settings: Mapping[str, Any], step: int) -> TrackioLogs:
    trackio = package("trackio", "trackio")
    trackio.init(
        project=config.project,
        name=config.name or run.resolve().name,
        config=dict(settings),
        resume="allow" if step else "never",
    )
    return TrackioLogs(trackio)
