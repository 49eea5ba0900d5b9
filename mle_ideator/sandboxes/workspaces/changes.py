"""What must be done so that a workspace holds what a snapshot does: only what is not so yet."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from mle_ideator.errors import SandboxError
from mle_ideator.sandboxes.trees import remove_tree
from mle_ideator.sandboxes.workspaces.content import Content, Item
from mle_ideator.sandboxes.workspaces.copying import (
    Signature,
    coarse_now_ns,
    is_past,
    signature_of,
    wait_for_the_next_tick,
)
from mle_ideator.sandboxes.workspaces.filling import Filling, set_mode
from mle_ideator.sandboxes.workspaces.folders import MOUNTED, Folders, in_order
from mle_ideator.sandboxes.workspaces.snapshots import Entry, Manifest


class Change:
    """From `content`, of which `base` holds what is held, to what `kept` holds by its manifest."""

    def __init__(
        self, content: Content, manifest: Manifest, base: Folders | None, kept: Folders
    ) -> None:
        self._content, self._manifest = content, manifest
        self._base, self._kept = base, kept
        self._one_snapshot = base is not None and os.path.sameopenfile(base.root, kept.root)
        self._here = {item.entry.path: item for item in content.items}
        self._staying = {entry.path for entry in manifest.entries if self._stays(entry)}

    def carry_out(self, here: Folders) -> None:
        """In the workspace. Raises `OSError`, or `SandboxError` if a file is not kept in full."""
        self._remove_others(here)
        filling = Filling(here, lambda entry: entry.mode)
        for entry in self._manifest.entries:
            if entry.path in self._staying:
                filling.leave(entry)
                continue
            copied = filling.put(entry, self._kept)
            if copied is not None and copied.status.st_size != entry.size:
                raise SandboxError(f"the snapshot is damaged: {entry.path!r} is of another size")
        filling.finish()
        set_mode(here.root, self._manifest.root, self._manifest.root.mode | 0o700)

    def signatures(self, own: Folders) -> dict[str, Signature]:
        """Afterwards: of files of which every change from now on will be seen.

        `own` has what is the workspace's alone: itself, or the upper layer.
        """
        files = {entry.path: entry for entry in self._manifest.entries if entry.kind == "file"}
        put = files.keys() - self._staying
        put |= {same for path in put if (same := files[path].same_as)}  # got another link
        known = {
            path: signature
            for path in files.keys() - put
            if (signature := self._here[path].signature) is not None
        }
        wait_for_the_next_tick()
        now = coarse_now_ns()
        for path in sorted(put, key=in_order):
            with suppress(FileNotFoundError):  # of the lower layer still
                signature = signature_of(_status(path, own))
                if is_past(signature, now):
                    known[path] = signature
        return known

    def _stays(self, entry: Entry) -> bool:
        item = self._here.get(entry.path)
        if item is None or item.entry.kind != entry.kind:
            return False
        match entry.kind:
            case "folder":
                return True
            case "link":
                return _facts(entry) == _facts(item.entry)
            case _:
                return item.held and (self._one_snapshot or self._is_in_both(item))

    def _is_in_both(self, item: Item) -> bool:
        """Is it one file in both snapshots?"""
        if self._base is None:
            return False
        with suppress(OSError):
            path = item.entry.path
            return os.path.samestat(_status(path, self._base), _status(path, self._kept))
        return False

    def _remove_others(self, here: Folders) -> None:
        """All but what stays and what is mounted from elsewhere."""
        gone: set[str] = set()
        left_out = (left.path for left in self._content.left_out if left.why != MOUNTED)
        for path in sorted([*self._here, *left_out], key=in_order):
            if path in self._staying:
                continue
            if path.rpartition("/")[0] not in gone:
                _remove(*here.of(path))
            gone.add(path)


def _remove(name: str, folder: int) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except IsADirectoryError:
        remove_tree(Path(f"/proc/self/fd/{folder}/{name}"))
        with suppress(FileNotFoundError):
            os.stat(name, dir_fd=folder, follow_symlinks=False)
            raise OSError(errno.ENOTEMPTY, "it can not be removed", name) from None


def _status(path: str, folders: Folders) -> os.stat_result:
    name, folder = folders.of(path)
    return os.stat(name, dir_fd=folder, follow_symlinks=False)


def _facts(entry: Entry) -> tuple[str, int, int]:
    return entry.target, entry.uid, entry.gid
