"""What a training run tells while it goes on."""

from __future__ import annotations

from collections.abc import Mapping

from mle_ideator.benchmarks.runner.progress import Event
from mle_ideator.rl.training.warm_up.config import Progress


class Listener:
    """Hears everything and says nothing; what shows a run overrides what it shows."""

    def said(self, text: str) -> None:
        """A line that a person should read."""

    def doing(self, what: str) -> None:
        """What is done, or waited for, from now on."""

    def session(self, event: Event) -> None:
        """Of the sessions that help states are collected from."""

    def warming(self, progress: Progress) -> None:
        """Of the warm-up."""

    def step(self, step: int, steps: int, metrics: Mapping[str, float]) -> None:
        """One is done, of so many."""
