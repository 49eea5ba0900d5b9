"""Folders that agent code could write to, emptied from inside the walls."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import Any

_USABLE = 0o700


def empty(*folders: str) -> int:
    """Remove all that lies in them, whatever its mode; 1 if something is left, else 0."""
    for folder in folders:
        try:
            os.chmod(folder, _USABLE)  # noqa: PTH101
            with os.scandir(folder) as entries:
                for entry in list(entries):
                    if entry.is_dir(follow_symlinks=False):
                        shutil.rmtree(entry.path, onerror=_make_usable)
                    else:
                        os.unlink(entry.path)  # noqa: PTH108
        except (OSError, RecursionError):
            return 1
        if os.listdir(folder):  # noqa: PTH208
            return 1
    return 0


def _make_usable(again: Callable[[Any], Any], path: str, _: Any) -> None:
    for place in (os.path.dirname(path), path):  # noqa: PTH120
        os.chmod(place, _USABLE, follow_symlinks=os.chmod not in os.supports_follow_symlinks)  # noqa: PTH101
    again(path)
