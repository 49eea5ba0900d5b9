"""The task's files as copies in a workspace, and what to do when agent code changes them."""

from __future__ import annotations

import shutil
import stat
from contextlib import suppress
from pathlib import Path

from mle_ideator.files import signature
from mle_ideator.sandboxes.trees import make_usable, remove_tree


class CopiedInputs:
    """Copies `source` to `target`; `mend` puts back what differs from the copy."""

    def __init__(self, source: Path, target: Path) -> None:
        self._source, self._target = source, target
        self._paths = [Path(), *sorted(p.relative_to(source) for p in source.rglob("*"))]
        self._folders = {path for path in self._paths if (source / path).is_dir()}
        self._signatures: dict[Path, tuple[int, ...] | None] = {}
        for path in self._paths:
            self._put(path)

    def mend(self) -> tuple[list[str], list[str]]:
        """Names of what was put back, and of what could not be, which is tried again next time.

        A few microseconds for each file that is as it was. Never raises `OSError`.
        """
        restored: list[Path] = []
        lost: list[Path] = []
        for path in self._paths:
            if any(path.is_relative_to(folder) for folder in lost):
                continue  # it may lie behind a link by now
            found = self._signature(path)
            if found is None or found != self._signatures.get(path):
                try:
                    self._put(path)
                    restored.append(path)
                except OSError:
                    lost.append(path)
        return [str(path) for path in restored], [str(path) for path in lost]

    def _put(self, path: Path) -> None:
        self._signatures.pop(path, None)
        target = self._target / path
        if path in self._folders:
            make_usable(target)
        else:
            remove_tree(target)
            target.unlink(missing_ok=True)
            shutil.copyfile(self._source / path, target)
            target.chmod(0o444)
        self._signatures[path] = self._signature(path)

    def _signature(self, path: Path) -> tuple[int, ...] | None:
        """Changes whenever a file's content may have; a folder only has to be a usable one."""
        target = self._target / path
        if path not in self._folders:
            return signature(target)
        with suppress(OSError):
            status = target.lstat()
            if stat.S_ISDIR(status.st_mode):
                return status.st_mode, status.st_ino
        return None
