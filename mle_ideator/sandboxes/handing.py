"""Whom agent code in a container runs as, and files handed to that user."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_UNUSED_ID = 60_900
"""Given to nobody by systemd's and Debian's rules: not somebody's account on this machine."""


class User(NamedTuple):
    """A user of this machine, by the ids that a container knows it by."""

    uid: int
    gid: int
    gets_files: bool = False
    """Is it another than the runtime's, so that files must be handed over?"""

    @classmethod
    def for_containers(cls, *, rootless: bool) -> User:
        """The runtime's own user, so that files belong to it; never root.

        A daemon without root runs containers as this user already, and calls it 0 inside. A
        runtime that is root, which may read and remove everybody's files, takes an unused id.
        """
        if rootless:
            return cls(0, 0)
        if os.getuid() == 0:
            return cls(_UNUSED_ID, _UNUSED_ID, gets_files=True)
        return cls(os.getuid(), os.getgid())

    def __str__(self) -> str:
        return f"{self.uid}:{self.gid}"


def hand_over(folder: Path, user: User, depth: int = 64) -> None:
    """Give root's files below `folder`, and itself, to a user that can not read them otherwise.

    No link is followed. What agent code owns already stays as it is.
    """
    if not user.gets_files:
        return
    with suppress(OSError):
        os.lchown(folder, user.uid, user.gid)
        with os.scandir(folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    _give(entry, user, depth)


def _give(entry: os.DirEntry[str], user: User, depth: int) -> None:
    status = entry.stat(follow_symlinks=False)
    if status.st_uid != 0:
        return
    if stat.S_ISDIR(status.st_mode) and depth > 1:
        hand_over(Path(entry.path), user, depth - 1)
    else:
        os.lchown(entry.path, user.uid, user.gid)


def readable_copy(source: Path, target: Path, user: User) -> Path:
    """`source` itself if the user can read it all, else a copy at `target` that it can."""
    if not user.gets_files or all(_is_public(path) for path in (source, *source.rglob("*"))):
        return source
    shutil.copytree(source, target)
    hand_over(target, user)
    return target


def _is_public(path: Path) -> bool:
    mode = path.stat().st_mode
    wanted = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(mode) else 0)
    return mode & wanted == wanted
