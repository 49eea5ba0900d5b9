"""The folders below a root, each reached through a descriptor of the one above it.

No link is followed, and neither depth nor the length of a path matters: a few descriptors are open
at a time, whatever agent code built.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

LONGEST_PATH = 4000
"""Bytes. Programs can not use a path of more than 4,096, the name of the workspace included."""
MOUNTED = "mounted"
_OPEN = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_USABLE = 0o700
_KEPT_OPEN = 32


class Folders:
    """Paths are relative to the root, with `/` between names; the root is `""`.

    A folder that its owner may not use is opened to the owner; unless `writing`, it is closed
    again afterwards. Methods raise `OSError`.
    """

    def __init__(self, root: Path, *, writing: bool = False) -> None:
        self._writing = writing
        self._path: str | None = ""
        self._names: list[str] = []
        self._chain = [_opened(str(root), None, put_back=False)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        while self._chain:
            self._chain.pop().close()

    @property
    def root(self) -> int:
        """Its descriptor."""
        return self._chain[0].descriptor

    def at(self, path: str) -> int:
        """The descriptor of a folder, good until another one is asked for."""
        if path != self._path:
            self._path = None
            self._go(path.split("/") if path else [])
            self._path = path
        return self._chain[-1].descriptor

    def of(self, path: str) -> tuple[str, int]:
        """The name of what has that path, and the descriptor of the folder that it is in."""
        folder, _, name = path.rpartition("/")
        return name, self.at(folder)

    def _go(self, names: list[str]) -> None:
        shared = 0
        while self._names[shared : shared + 1] == names[shared : shared + 1] != []:
            shared += 1
        self._leave(shared)
        if self._chain[-1].descriptor < 0:  # too far up to have been kept open
            shared = 0
            self._leave(shared)
        for name in names[shared:]:
            self._enter(name)

    def _leave(self, depth: int) -> None:
        while len(self._names) > depth:
            self._names.pop()
            self._chain.pop().close()

    def _enter(self, name: str) -> None:
        parent = self._chain[-1].descriptor
        self._chain.append(_opened(name, parent, put_back=not self._writing))
        self._names.append(name)
        far_up = len(self._chain) - 1 - _KEPT_OPEN
        if far_up > 0:
            self._chain[far_up].close()
            self._chain[far_up] = _CLOSED


class _Folder(NamedTuple):
    descriptor: int
    mode: int | None
    """To be put back when it is closed."""

    def close(self) -> None:
        if self.descriptor < 0:
            return
        if self.mode is not None:
            with suppress(OSError):
                os.fchmod(self.descriptor, self.mode)
        os.close(self.descriptor)


_CLOSED = _Folder(-1, None)


def _opened(name: str, parent: int | None, *, put_back: bool) -> _Folder:
    if passes_by_permissions():
        return _Folder(os.open(name, os.O_RDONLY | _OPEN, dir_fd=parent), None)
    found = os.open(name, os.O_PATH | _OPEN, dir_fd=parent)
    try:
        itself = Path(f"/proc/self/fd/{found}")
        mode = stat.S_IMODE(os.fstat(found).st_mode)
        closed = mode & _USABLE != _USABLE
        if closed:
            itself.chmod(mode | _USABLE)
        descriptor = os.open(itself, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return _Folder(descriptor, mode if closed and put_back else None)
    finally:
        os.close(found)


@cache
def passes_by_permissions() -> bool:
    """Can this process read and write whatever its permissions are, as root can?"""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16) & _DAC_OVERRIDE != 0
    return False


_DAC_OVERRIDE = 1 << 1


# ------------------------------------------------------------------------------ what is in them


class Found(NamedTuple):
    """Something below the root."""

    path: str
    kind: str
    """`file`, `folder` or `link`; or, in words, why it is none of these to us."""
    status: os.stat_result


def in_order(path: str) -> tuple[str, str]:
    """Sorts paths folder by folder, each after the folder that it is in."""
    folder, _, name = path.rpartition("/")
    return folder, name


def walk(folders: Folders, start: str = "", skipped: Collection[str] = ()) -> Iterator[Found]:
    """All that is below `start`: a folder before what is in it. Vanishing things are passed over.

    What is in a folder that is named in `skipped`, and this itself, are not told.
    """
    device = os.fstat(folders.root).st_dev
    waiting = [start]
    while waiting:
        folder = waiting.pop()
        below = f"{folder}/" if folder else ""
        for name, status in _listed(folders, folder):
            path = below + name
            if path in skipped:
                continue
            kind = _kind(path, status, device)
            if kind == "folder":
                waiting.append(path)
            yield Found(path, kind, status)


def _listed(folders: Folders, folder: str) -> list[tuple[str, os.stat_result]]:
    found = []
    with suppress(OSError), os.scandir(folders.at(folder)) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                found.append((entry.name, entry.stat(follow_symlinks=False)))
    return found


def _kind(path: str, status: os.stat_result, device: int) -> str:
    if len(path) > LONGEST_PATH // 4 and len(os.fsencode(path)) > LONGEST_PATH:
        return "path too long"
    kind = _KINDS.get(stat.S_IFMT(status.st_mode), "of no known kind")
    if kind == "folder" and status.st_dev != device:
        return MOUNTED
    return kind


_KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "named pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}
