"""The private folder of one sandbox on this machine: sockets, home, temporary files."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from mle_ideator.sandboxes.processes import kill_marked

PREFIX = "mle-ideator-"
_LONGEST_SOCKET_PATH = 90  # the system's limit is 107 bytes


class PrivateFolder:
    """Made for the owner alone; removed at the end."""

    def __init__(self) -> None:
        parent = tempfile.gettempdir()
        if len(os.fsencode(parent)) > _LONGEST_SOCKET_PATH - 40:
            parent = "/tmp"  # noqa: S108 a random name, readable by the owner only
        self.mark = secrets.token_hex(16)
        hidden = Path(tempfile.mkdtemp(prefix=f".{PREFIX}", dir=parent))
        self._lock = (hidden / "lock").open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._lock.write(self.mark)
        self._lock.flush()
        self.path = hidden.rename(hidden.with_name(hidden.name.removeprefix(".")))
        self.kernels = self.path / "k"
        self.home = self.path / "home"
        self.temporary = self.path / "tmp"
        for folder in (self.kernels, self.home, self.temporary):
            folder.mkdir(mode=0o700)

    def remove(self) -> None:
        remove_tree(self.path)
        self._lock.close()


def remove_tree(path: Path) -> None:
    """Remove a folder, also what agent code made unreadable in it. Links are not followed."""
    for folder, names, _ in os.walk(path):
        for inner in (Path(folder, name) for name in names):
            with suppress(OSError):
                if not inner.is_symlink():
                    inner.chmod(0o700)
    shutil.rmtree(path, ignore_errors=True)


def remove_leftovers() -> None:
    """Clear away after runtimes that were killed before they could: nobody holds their lock."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            if folder.lstat().st_uid == os.getuid() and not folder.is_symlink():
                _remove_leftover(folder)


def _remove_leftover(folder: Path) -> None:
    with (folder / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        mark = lock.read()
        if re.fullmatch("[0-9a-f]{32}", mark):  # agent code may have written anything there
            kill_marked(mark)
        remove_tree(folder)
