"""A folder filled with what entries say, from other folders: a snapshot, or a workspace."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress

import msgspec

from mle_ideator.sandboxes.workspaces.copying import Copied, copy_file
from mle_ideator.sandboxes.workspaces.folders import Folders
from mle_ideator.sandboxes.workspaces.snapshots import Entry


class Filling:
    """`put` each entry after the one that it is in; then `finish`. Methods raise `OSError`.

    `mode_of` tells the mode that an entry gets.
    """

    def __init__(self, target: Folders, mode_of: Callable[[Entry], int]) -> None:
        self._target, self._mode_of = target, mode_of
        self.done: dict[str, Entry] = {}
        """What was put, as it was found by then."""

    def put(self, entry: Entry, source: Folders) -> Copied | None:
        """From the same path in `source`. Tells of a file that was copied."""
        copied = None
        if entry.kind == "folder":
            name, folder = self._target.of(entry.path)
            os.mkdir(name, 0o700, dir_fd=folder)
        elif entry.kind == "link":
            name, folder = self._target.of(entry.path)
            os.symlink(entry.target, name, dir_fd=folder)
            with suppress(PermissionError):
                os.chown(name, entry.uid, entry.gid, dir_fd=folder, follow_symlinks=False)
        elif not self._put_same(entry):
            entry, copied = self._put_copy(entry, source)
        self.done[entry.path] = entry
        return copied

    def leave(self, entry: Entry) -> None:
        """It is there already; only a folder's mode may have to be set."""
        self.done[entry.path] = entry

    def put_hard_link(self, entry: Entry, source: Folders) -> bool:
        """Make a file the one that has the same path in `source`; false where that can not be."""
        name, folder = self._target.of(entry.path)
        try:
            source_name, source_folder = source.of(entry.path)
            _link(source_name, source_folder, name, folder)
        except OSError:
            return False
        self.done[entry.path] = entry
        return True

    def finish(self) -> None:
        """Give folders their modes, from within: a closed one can not be filled."""
        for entry in reversed(self.done.values()):
            if entry.kind == "folder":
                set_mode(self._target.at(entry.path), entry, self._mode_of(entry))

    def _put_same(self, entry: Entry) -> bool:
        """A hard link to what was put under another path."""
        if entry.same_as not in self.done:
            return False
        first, folder = self._target.of(entry.same_as)
        folder = os.dup(folder)
        try:
            _link(first, folder, *self._target.of(entry.path))
        except OSError:
            return False
        finally:
            os.close(folder)
        return True

    def _put_copy(self, entry: Entry, source: Folders) -> tuple[Entry, Copied]:
        name, folder = self._target.of(entry.path)
        source_name, source_folder = source.of(entry.path)
        copied = copy_file(source_name, source_folder, name, folder)
        status = copied.status
        copy = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            set_mode(copy, entry, self._mode_of(entry))
            os.utime(copy, ns=(status.st_mtime_ns, status.st_mtime_ns))
        finally:
            os.close(copy)
        found = msgspec.structs.replace(
            entry, size=status.st_size, mtime_ns=status.st_mtime_ns, same_as=None
        )
        return found, copied


def set_mode(descriptor: int, entry: Entry, mode: int) -> None:
    """The mode, and the owner if this process may set it, where they are not so yet."""
    status = os.fstat(descriptor)
    if (status.st_uid, status.st_gid) != (entry.uid, entry.gid):
        with suppress(PermissionError):
            os.fchown(descriptor, entry.uid, entry.gid)
    if stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
        os.fchmod(descriptor, mode)


def _link(name: str, folder: int, into: str, target: int) -> None:
    os.link(name, into, src_dir_fd=folder, dst_dir_fd=target, follow_symlinks=False)
