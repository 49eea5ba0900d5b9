"""Checkpoints of a run: written to the side, renamed when whole, the latest one linked.

RUN/checkpoints/step-000030/   the model, as `hf:FOLDER` serves it, and all that goes with it
RUN/checkpoint                 a relative link to the latest
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

FOLDER, LATEST = "checkpoints", "checkpoint"


def write_checkpoint(run: Path, step: int, keep: int, write: Callable[[Path], None]) -> Path:
    """Have `write` fill a folder, and make it the latest checkpoint, whole or not at all.

    Of the earlier ones the last `keep - 1` stay.
    """
    folder = run / FOLDER / f"step-{step:06d}"
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    write(part)
    _synced(part)
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)
    link = run / f"{LATEST}.part"
    link.unlink(missing_ok=True)
    link.symlink_to(folder.relative_to(run))
    link.rename(run / LATEST)
    for old in sorted((run / FOLDER).glob("step-*"))[:-keep]:
        shutil.rmtree(old)
    return folder


def latest_checkpoint(run: Path) -> Path | None:
    """The last one that was completed."""
    link = run / LATEST
    return link.resolve() if link.exists() else None


def _synced(folder: Path) -> None:
    """On the disk before it is renamed, against a loss of power."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
