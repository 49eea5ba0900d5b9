"""Whom agent code in a container runs as, and files handed to that user."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from mle_ideator.sandboxes.workspaces.folders import MOUNTED, Folders, walk

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


def hand_over(folder: Path, user: User) -> None:
    """Give all root's files in `folder`, and itself, to a user that can not read them otherwise.

    What agent code owns already stays as it is. Agent code may run meanwhile: no link is followed.
    """
    if not user.gets_files:
        return
    with suppress(OSError), Folders(folder) as folders:
        os.fchown(folders.root, user.uid, user.gid)
        _give_all(folders, "", user)


def hand_over_new(folder: Path, user: User) -> None:
    """The same for what lies directly in `folder` and is root's, with all that is in it.

    That is what the runtime has written since. It takes no longer if agent code has many files.
    """
    if not user.gets_files:
        return
    with suppress(OSError), Folders(folder) as folders:
        for name in os.listdir(folders.root):  # noqa: PTH208 a descriptor
            if _give(folders, name, user):
                _give_all(folders, name, user)


def _give_all(folders: Folders, start: str, user: User) -> None:
    for found in walk(folders, start):
        if found.status.st_uid == 0 and found.kind != MOUNTED:
            _give(folders, found.path, user)


def _give(folders: Folders, path: str, user: User) -> bool:
    """Is it a folder that was root's?"""
    with suppress(OSError):
        name, folder = folders.of(path)
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if status.st_uid == 0:
            os.chown(name, user.uid, user.gid, dir_fd=folder, follow_symlinks=False)
            return stat.S_ISDIR(status.st_mode)
    return False


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
