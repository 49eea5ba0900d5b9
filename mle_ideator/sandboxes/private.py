"""The private folder of one sandbox on this machine: sockets, home, temporary files."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

PREFIX = "mle-ideator-"
_LONGEST_SOCKET_PATH = 90  # the system's limit is 107 bytes


class PrivateFolder:
    """Made for the owner alone; removed at the end."""

    def __init__(self) -> None:
        parent = tempfile.gettempdir()
        if len(os.fsencode(parent)) > _LONGEST_SOCKET_PATH - 40:
            parent = "/tmp"  # noqa: S108 a random name, readable by the owner only
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        self._lock = (self.path / "lock").open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.mark = secrets.token_hex(16)
        self.kernels = self.path / "k"
        self.home = self.path / "home"
        self.temporary = self.path / "tmp"
        for folder in (self.kernels, self.home, self.temporary):
            folder.mkdir(mode=0o700)

    def remove(self) -> None:
        """Also what agent code made unreadable in it."""
        shutil.rmtree(self.path, onerror=_open_and_retry)
        self._lock.close()


def _open_and_retry(function: object, path: str, _: object) -> None:
    stubborn = Path(path)
    try:
        stubborn.parent.chmod(0o700)
        if stubborn.is_dir() and not stubborn.is_symlink():
            stubborn.chmod(0o700)
            shutil.rmtree(stubborn, ignore_errors=True)
        else:
            stubborn.unlink()
    except OSError:
        pass  # gone already, or not ours to remove


def remove_leftovers() -> None:
    """Remove private folders whose runtime was killed before it could: nobody holds their lock."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError), (folder / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, onerror=_open_and_retry)
