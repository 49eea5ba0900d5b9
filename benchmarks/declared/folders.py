"""The task source `folder`: a task of one's own, named by its folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mle_ideator.benchmarks.leaderboards import Leaderboard
from mle_ideator.protocols import Grader, TaskCard
from mle_ideator.types import Task


class TaskFolders:
    """Lists nothing: what lies where is the caller's to know."""

    def cards(self) -> Sequence[TaskCard]:
        return ()

    def load(self, path: str) -> tuple[Task, Grader]:
        """The task, built at its first use and cached. Raises `TaskError`."""
        from mle_ideator.benchmarks.declared.assembling import load

        return load(Path(path))

    def leaderboard(self, path: str) -> Leaderboard | None:
        from mle_ideator.benchmarks.declared.boards import read_leaderboard

        return read_leaderboard(Path(path))
