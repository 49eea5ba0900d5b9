"""What agent code leaves in a container beside its workspace, removed from inside."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from . import system

_SHARED = ("/dev/shm", "/dev/mqueue")  # noqa: S108
_USABLE = 0o700
_REMOVE = 0


def clear(*folders: str) -> int:
    """Empty home, temporary folder, shared memory and `folders`; 1 if something is left, else 0."""
    own = (os.environ["HOME"], os.environ["TMPDIR"], *folders)
    shared = filter(os.path.isdir, _SHARED)
    return int(not all([*map(_emptied, (*own, *shared)), _system_v_removed()]))


def _emptied(folder: str) -> bool:
    """Remove all that lies in it, whatever its mode."""
    try:
        with suppress(PermissionError):  # not its owner, but all may use it
            os.chmod(folder, _USABLE)  # noqa: PTH101
        with os.scandir(folder) as entries:
            for entry in list(entries):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, onerror=_try_again)
                else:
                    os.unlink(entry.path)  # noqa: PTH108
        return not os.listdir(folder)  # noqa: PTH208
    except (OSError, RecursionError):
        return False


def _try_again(_: Callable[[Any], Any], path: str, __: Any) -> None:
    """Once it can be used. A link is never followed: it can be removed if its folder is usable."""
    with suppress(PermissionError):  # as above
        os.chmod(os.path.dirname(path), _USABLE)  # noqa: PTH101, PTH120
    if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114
        os.chmod(path, _USABLE)  # noqa: PTH101
        shutil.rmtree(path, onerror=_try_again)
    else:
        os.unlink(path)  # noqa: PTH108


def _system_v_removed() -> bool:
    """Shared memory, messages and semaphores of System V, which no process has to hold."""
    libc = system.libc
    for number in _listed("shm"):
        libc.shmctl(number, _REMOVE, None)
    for number in _listed("msg"):
        libc.msgctl(number, _REMOVE, None)
    for number in _listed("sem"):
        libc.semctl(number, 0, _REMOVE)
    return not any(map(_listed, ("shm", "msg", "sem")))


def _listed(kind: str) -> list[int]:
    with open(f"/proc/sysvipc/{kind}") as table:  # noqa: PTH123
        return [int(line.split()[1]) for line in table.readlines()[1:]]
