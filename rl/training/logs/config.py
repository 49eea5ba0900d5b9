"""Where a run is to be logged."""

from __future__ import annotations

from mle_ideator.types import Value


class LogConfig(Value, frozen=True, kw_only=True):
    """`metrics.jsonl` is written in any case."""

    to: tuple[str, ...] = ("tensorboard",)
    """Trackers: `tensorboard`, `trackio`, `wandb`, `mlflow`; `[]` for none."""
    project: str = "mle-ideator"
    """What Trackio and W&B call project, and MLflow experiment."""
    name: str | None = None
    """Of the run there; without it, its folder's."""
