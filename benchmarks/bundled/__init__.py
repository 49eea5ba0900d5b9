"""Tasks that come with this package. Nothing is downloaded.

One folder a task, as `benchmarks.declared` says. Their data are real and ship inside installed
packages, or come from a documented, seeded generator. To add a task, add a folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from mle_ideator.benchmarks.declared.spec import DECLARATION, read_spec, task_id_of
from mle_ideator.benchmarks.leaderboards import Leaderboard
from mle_ideator.errors import TaskError, unknown
from mle_ideator.protocols import Grader, TaskCard
from mle_ideator.types import Task

FOLDER = Path(__file__).parent


class BundledTasks:
    """The task source `bundled`."""

    def cards(self) -> Sequence[TaskCard]:
        folders = bundled_folders()
        return [read_spec(folder).card(task_id) for task_id, folder in folders.items()]

    def load(self, task_id: str) -> tuple[Task, Grader]:
        """The task, built at its first use and cached. Raises `TaskError` if it does not exist."""
        folder = _folder(task_id)
        from mle_ideator.benchmarks.declared.assembling import load

        task, grader = load(folder)
        masked = dict.fromkeys((*task.masked, *_all_sources()))
        return msgspec.structs.replace(task, masked=tuple(masked)), grader

    def leaderboard(self, task_id: str) -> Leaderboard | None:
        from mle_ideator.benchmarks.declared.boards import read_leaderboard

        return read_leaderboard(_folder(task_id))


def bundled_folders() -> dict[str, Path]:
    """By id, sorted."""
    folders = [path.parent for path in FOLDER.glob(f"*/{DECLARATION}")]
    return dict(sorted((task_id_of(folder), folder) for folder in folders))


def _all_sources() -> list[str]:
    """Where the data of all bundled tasks lie: one package may hold a copy of another's."""
    found: list[str] = []
    for folder in bundled_folders().values():
        source = read_spec(folder).source
        if source is not None:
            with suppress(TaskError):  # not installed
                found += source.paths
    return found


def _folder(task_id: str) -> Path:
    folders = bundled_folders()
    if task_id not in folders:
        raise TaskError(unknown("task", task_id, folders))
    return folders[task_id]
