"""The private folder of one sandbox on this machine: sockets, home, temporary files."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from mle_ideator.sandboxes.environment import MARK_LENGTH
from mle_ideator.sandboxes.processes import kill_marked
from mle_ideator.sandboxes.trees import make_usable, remove_tree

PREFIX = "mle-ideator-"
OUTPUT = "output"
"""The named pipe in it that everything in the sandbox writes to."""
_LONGEST_SOCKET_PATH = 90  # the system's limit is 107 bytes


class PrivateFolder:
    """Made for the owner alone; removed at the end."""

    def __init__(self) -> None:
        parent = tempfile.gettempdir()
        if len(os.fsencode(parent)) > _LONGEST_SOCKET_PATH - 40:
            parent = "/tmp"  # noqa: S108 a random name, readable by the owner only
        self.mark = secrets.token_hex(MARK_LENGTH // 2)
        hidden = Path(tempfile.mkdtemp(prefix=f".{PREFIX}", dir=parent))
        self._lock = (hidden / "lock").open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._lock.write(self.mark)
        self._lock.flush()
        self.path = hidden.rename(hidden.with_name(hidden.name.removeprefix(".")))
        self.kernels = self.path / "k"
        self.home = self.path / "home"
        self.temporary = self.path / "tmp"
        self.commands = self.path / "bin"
        self.make_usable()

    def make_usable(self) -> None:
        """Put back what agent code closed, removed or replaced. Raises `OSError`."""
        for folder in (self.path, self.kernels, self.home, self.temporary):
            make_usable(folder)
        if self.path.lstat().st_uid != os.getuid():
            raise PermissionError(f"{self.path} belongs to another user")

    def remove(self) -> None:
        with self._lock:
            remove_tree(self.path)


def remove_leftovers() -> None:
    """Clear away after runtimes that were killed before they could: nobody holds their lock.

    Agent code may have written what it liked there, so nothing in such a folder stops a new run.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            status = folder.lstat()
            if status.st_uid == os.getuid() and stat.S_ISDIR(status.st_mode):
                _remove_leftover(folder)


def _remove_leftover(folder: Path) -> None:
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(folder / "lock", flags)
    try:
        if not stat.S_ISREG(os.fstat(lock).st_mode):
            return
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        mark = os.read(lock, MARK_LENGTH + 1)
        if re.fullmatch(b"[0-9a-f]{32}", mark):
            kill_marked(mark.decode())
        remove_tree(folder)
    finally:
        os.close(lock)
