"""How much disk agent code takes, and whether that is too much."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mle_ideator.sandboxes import notes
from mle_ideator.sandboxes.limits.usage import HeldFiles, held_files

_OPEN = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_RESERVE_SHARE, _RESERVE_BYTES = 0.02, 2**29
_TOLERANCE = 0.01
"""Of the bound: growth that does not matter where space runs short, so that code which clears up
may write a line of log."""


@dataclass(frozen=True)
class Taken:
    """Disk, at one moment."""

    used: int
    """Bytes on disk of all files and folders that were found, each once."""
    held: HeldFiles
    full: tuple[tuple[str, int], ...]
    """Files as large as one may be, with the time of their last change."""
    complete: bool
    """Could every folder be read?"""
    free: int
    """Bytes left in the file system that has least."""
    reserve: int
    """What should be left in it."""

    @property
    def all(self) -> int:
        return self.used + self.held.bytes

    @property
    def clear(self) -> bool:
        """Is everything that is taken seen?"""
        return self.complete and self.held.complete


@dataclass
class _Walk:
    file_bytes: int
    used: int = 0
    complete: bool = True
    full: list[tuple[str, int]] = field(default_factory=list)
    seen: set[tuple[int, int]] = field(default_factory=set)
    devices: set[int] = field(default_factory=set)

    def folder(self, top: Path, without: frozenset[str]) -> None:
        """No link is followed."""
        try:
            descriptor = os.open(top, _OPEN)
        except OSError:
            self.complete = self.complete and not top.exists()
            return
        try:
            self.devices.add(os.fstat(descriptor).st_dev)
            self._below(f"/proc/self/fd/{descriptor}", str(top), without)
        finally:
            os.close(descriptor)

    def _below(self, opened: str, top: str, without: frozenset[str]) -> None:
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            try:
                with os.scandir(opened + folder) as entries:
                    for entry in entries:
                        inner = f"{folder}/{entry.name}"
                        if self._count(entry, inner) and top + inner not in without:
                            waiting.append(inner)
            except (FileNotFoundError, NotADirectoryError):
                continue  # gone since
            except OSError:  # closed, or its path is too long
                self.complete = False

    def _count(self, entry: os.DirEntry[str], inner: str) -> bool:
        """Add it; is it a folder to look into?"""
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return False
        self.devices.add(status.st_dev)
        is_folder = stat.S_ISDIR(status.st_mode)
        if status.st_nlink > 1 and not is_folder:
            if (status.st_dev, status.st_ino) in self.seen:
                return False
            self.seen.add((status.st_dev, status.st_ino))
        self.used += 512 * status.st_blocks
        if status.st_size >= self.file_bytes and stat.S_ISREG(status.st_mode):
            self.full.append((inner[1:], status.st_mtime_ns))
        return is_folder


@dataclass(frozen=True)
class Places:
    """What is walked, and for what."""

    folders: tuple[Path, ...]
    without: frozenset[str]
    """Folders in them, by whole path, that are not looked into."""
    file_bytes: int
    """As large as one file may be."""


def measure(places: Places, root: int, trusted: Collection[int] = ()) -> Taken:
    """Walk the folders, and look what processes below `root` hold open; never raises.

    `trusted` ones run no agent code. `root` is 0 while nothing runs.
    """
    walk = _Walk(places.file_bytes)
    for folder in places.folders:
        walk.folder(folder, places.without)
    free, reserve = free_space(places.folders)
    return Taken(
        used=walk.used,
        held=held_files(root, walk.devices, trusted) if root else HeldFiles(0, True),
        full=tuple(walk.full),
        complete=walk.complete,
        free=free,
        reserve=reserve,
    )


def free_space(folders: Sequence[Path]) -> tuple[int, int]:
    """Bytes left in the folders' file system that has least, and what should be left in it."""
    found = []
    for folder in folders:
        try:
            status = os.statvfs(folder)
        except OSError:
            continue
        free, size = status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize
        found.append((free, min(_RESERVE_BYTES, int(_RESERVE_SHARE * size))))
    return min(found, default=(2**63, 0))


class DiskBound:
    """Judges what is taken. A sandbox that is over its bound may still delete, but not grow."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._tolerance = int(_TOLERANCE * bound)
        self._first: Taken | None = None
        self._last: Taken | None = None
        self._floor = bound
        """What may be taken: the bound, or the least seen since it was passed."""
        self._stopped = False

    def begin(self) -> None:
        """A cell begins. What the last one was stopped for is not held against this one."""
        if self._stopped and self._last is not None:
            self._floor = max(self._bound, self._last.all)
        self._first, self._stopped = self._last, False

    def judge(self, taken: Taken) -> str | None:
        """Why the sandbox has to be stopped, in words, or `None`. Once a cell."""
        if self._last is None:  # what was there before any code ran
            self._floor = max(self._bound, taken.all)
        self._last, first = taken, self._first or taken
        self._first = first
        self._floor = max(self._bound, min(self._floor, taken.all))
        why = None if self._stopped else self._excess(taken, first)
        self._stopped = self._stopped or why is not None
        return why

    def _excess(self, taken: Taken, first: Taken) -> str | None:
        over = self._floor + (self._tolerance if self._floor > self._bound else 0)
        if taken.all > over:
            return notes.over_disk(taken.all, self._bound)
        grown = taken.all - first.all
        if taken.free < taken.reserve and grown > self._tolerance:
            return notes.disk_full(taken.free, taken.all)
        if not taken.clear and first.free - taken.free > self._bound + max(0, grown):
            return notes.hidden_disk(self._bound)
        return None
