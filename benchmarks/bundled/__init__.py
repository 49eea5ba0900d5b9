"""Tasks on real data that ships inside installed packages. Nothing is downloaded.

One folder a task: `task.yaml` declares it (`spec.Spec`), `description.md` is what agents read,
`build.py` has one function `build(root, rng) -> Frames` that reads the package's files below
`root`. To add a task, add a folder; `docs/tasks.md` tells how.
"""

from __future__ import annotations

from collections.abc import Sequence

from mle_ideator.benchmarks.bundled.spec import read_spec, task_ids
from mle_ideator.errors import TaskError, unknown
from mle_ideator.protocols import Grader, TaskCard
from mle_ideator.types import Task


class BundledTasks:
    """The task source `bundled`."""

    def cards(self) -> Sequence[TaskCard]:
        return [read_spec(task_id).card(task_id) for task_id in task_ids()]

    def load(self, task_id: str) -> tuple[Task, Grader]:
        """The task, built at its first use and cached. Raises `TaskError` if it does not exist."""
        known = task_ids()
        if task_id not in known:
            raise TaskError(unknown("task", task_id, known))
        from mle_ideator.benchmarks.bundled.assembling import load

        return load(task_id)
