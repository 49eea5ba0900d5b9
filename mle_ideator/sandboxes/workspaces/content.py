"""What a workspace holds at a moment, and how much of it its last snapshot holds as well."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from mle_ideator.sandboxes.workspaces.copying import Signature, signature_of
from mle_ideator.sandboxes.workspaces.folders import (
    Folders,
    Found,
    in_order,
    passes_by_permissions,
    walk,
)
from mle_ideator.sandboxes.workspaces.snapshots import (
    KEPT_KINDS,
    Entry,
    LeftOut,
    Manifest,
    entry_of,
)


@dataclass(frozen=True, slots=True)
class Item:
    """A file, folder or link of a workspace."""

    entry: Entry
    source: Folders
    """Where its content can be read."""
    held: bool = False
    """Does the last snapshot hold the same file?"""
    signature: Signature | None = None
    """Of a file, if a change of it can be seen by that."""


@dataclass(frozen=True, slots=True)
class Content:
    """All that a workspace holds; items are in order, folders before what is in them."""

    root: Entry
    items: list[Item]
    left_out: list[LeftOut]

    def manifest(self, kept: Mapping[str, Entry]) -> Manifest:
        """Of a snapshot that holds these entries."""
        entries = [
            entry if entry.same_as is None or entry.same_as in kept else _alone(entry)
            for entry in kept.values()
        ]
        return Manifest(
            as_they_were=passes_by_permissions(),
            root=self.root,
            entries=entries,
            left_out=self.left_out,
        )


def plain_content(here: Folders, apart: Collection[str], known: Mapping[str, Signature]) -> Content:
    """Of a folder; files with `known` signatures are held."""
    content = Content(_root(here), [], [])
    _add(content, walk(here, skipped=apart), here, known)
    return content


def layered_content(
    here: Folders,
    upper: Folders,
    changed: Iterable[Found],
    lower: Mapping[str, Entry],
    known: Mapping[str, Signature],
) -> Content:
    """Of an overlay: `changed` is what is in its upper layer (`Overlay.changed`).

    What is not changed is held: it is in the lower layer, so in each snapshot since.
    """
    content = Content(_root(here), [], [])
    above, hiding = [], set()
    for found in changed:
        if found.kind != "folder":
            hiding.add(found.path)
        if found.kind == "moved":
            # its files' signatures change when snapshots link to them, so none is known
            _add(content, walk(here, start=found.path), here, {}, seen=False)
        if found.kind != "hidden":
            is_folder = found.kind in ("new", "moved")
            above.append(found._replace(kind="folder") if is_folder else found)
    _add(content, above, upper, known)
    replaced = {found.path for found in above}
    below = _not_hidden(lower, hiding)
    below = {path: entry for path, entry in below.items() if path not in replaced}
    for entry in below.values():
        alone = entry.same_as is not None and entry.same_as not in below
        content.items.append(Item(_alone(entry) if alone else entry, here, held=True))
    content.items.sort(key=lambda item: in_order(item.entry.path))
    return content


def _not_hidden(lower: Mapping[str, Entry], hiding: Collection[str]) -> dict[str, Entry]:
    """What is neither hidden nor in a folder that is."""
    hidden: set[str] = set()
    for path in lower:
        if path in hiding or path.rpartition("/")[0] in hidden:
            hidden.add(path)
    return {path: entry for path, entry in lower.items() if path not in hidden}


def _add(
    content: Content,
    found: Iterable[Found],
    source: Folders,
    known: Mapping[str, Signature],
    *,
    seen: bool = True,
) -> None:
    """Without `seen`, changes of files can not be seen by their signatures."""
    first: dict[tuple[int, int], str] = {}
    for path, kind, status in sorted(found, key=lambda one: in_order(one.path)):
        if kind not in KEPT_KINDS:
            content.left_out.append(LeftOut(path, kind))
            continue
        target = ""
        if kind == "link":
            with suppress(OSError):
                name, folder = source.of(path)
                target = os.readlink(name, dir_fd=folder)
            if not target:
                continue  # removed in this moment
        entry = entry_of(path, kind, status, target)
        if kind != "file":
            content.items.append(Item(entry, source))
            continue
        if status.st_nlink > 1:
            other = first.setdefault((status.st_dev, status.st_ino), path)
            if other != path:
                entry = msgspec.structs.replace(entry, same_as=other)
        signature = signature_of(status)
        held = known.get(path) == signature
        content.items.append(Item(entry, source, held, signature if seen else None))


def _root(here: Folders) -> Entry:
    return entry_of("", "folder", os.fstat(here.root))


def _alone(entry: Entry) -> Entry:
    return msgspec.structs.replace(entry, same_as=None)
