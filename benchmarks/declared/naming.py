"""The folder of a declared task, by its id or its path."""

from __future__ import annotations

import os
from pathlib import Path

from mle_ideator.benchmarks.declared.spec import DECLARATION
from mle_ideator.errors import TaskError, unknown


def folder_named(task: str) -> Path:
    """The folder of a bundled task's id, or that at a path. Raises `TaskError`."""
    from mle_ideator.benchmarks.bundled import bundled_folders

    path = Path(task)
    if (path / DECLARATION).is_file():
        return path
    if os.sep in task or path.is_dir():
        raise TaskError(f"{task} is no task folder: it has no {DECLARATION}")
    folders = bundled_folders()
    if task not in folders:
        raise TaskError(unknown("task", task, folders))
    return folders[task]
