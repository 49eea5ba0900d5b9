"""The task's files as copies in a workspace, and what to do when agent code changes them."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

Signature = tuple[int, ...]


class CopiedInputs:
    """Copies `source` to `target`; `mend` puts back what differs from the copy."""

    def __init__(self, source: Path, target: Path) -> None:
        self._source, self._target = source, target
        self._paths = [Path(), *sorted(p.relative_to(source) for p in source.rglob("*"))]
        self._signatures: dict[Path, Signature | None] = {}
        for path in self._paths:
            self._put(path)

    def mend(self) -> list[str]:
        """Names of what was put back. A few microseconds for each file that is as it was."""
        changed = []
        for path in self._paths:
            if _signature(self._target / path) != self._signatures[path]:
                self._put(path)
                changed.append(str(path))
        return changed

    def _put(self, path: Path) -> None:
        source, target = self._source / path, self._target / path
        if source.is_dir():
            if target.is_symlink() or not target.is_dir():
                _remove(target)
                target.mkdir(parents=True)
        else:
            _remove(target)
            shutil.copyfile(source, target)
            target.chmod(0o444)
        self._signatures[path] = _signature(target)


def _signature(path: Path) -> Signature | None:
    """Changes whenever a file's content may have; a folder only has to be one."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    if stat.S_ISDIR(status.st_mode):
        return (status.st_mode, status.st_ino)
    return (
        status.st_mode,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
