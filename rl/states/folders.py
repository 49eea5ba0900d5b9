"""A help state as a folder: read from it, written to it."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec

from mle_ideator.errors import RuntimeFailure, UsageError
from mle_ideator.journal import FILE, Event, read_journal
from mle_ideator.rl.states.recorded import (
    PIECE,
    Listing,
    Recorded,
    asked_in,
    manifest_in,
    until_asked,
)
from mle_ideator.sandboxes.trees import remove_tree
from mle_ideator.sandboxes.workspaces.filling import set_mode
from mle_ideator.sandboxes.workspaces.folders import Folders, passes_by_permissions
from mle_ideator.sandboxes.workspaces.snapshots import (
    FILES,
    MANIFEST,
    Entry,
    LeftOut,
    Manifest,
    stored_mode,
    write_manifest,
)
from mle_ideator.types import HelpRequest

WORKSPACE = "workspace"


def help_request_in(folder: Path) -> HelpRequest:
    """What is asked in the help state in a folder. Raises `UsageError` if there is none."""
    return asked_in(read_events(folder)).request


def read_events(folder: Path) -> tuple[Event, ...]:
    """The events of the help state in a folder, without private scores. Raises `UsageError`."""
    return until_asked(read_journal(folder), str(folder))


@contextmanager
def opened_folder(folder: Path) -> Iterator[Recorded]:
    """The help state in a folder, which may be read until the block ends. Raises `UsageError`."""
    with opened_state(read_events(folder), folder / WORKSPACE) as state:
        yield state


@contextmanager
def opened_state(events: tuple[Event, ...], snapshot: Path) -> Iterator[Recorded]:
    """A help state of some events and a snapshot, which need not be there."""
    if not os.path.lexists(snapshot):
        yield Recorded(events=events, listing=None, read=_nothing)
        return
    with ExitStack() as opened:
        try:
            manifest = manifest_in((snapshot / MANIFEST).read_bytes(), str(snapshot))
            files = opened.enter_context(Folders(snapshot / FILES))
            listing = _listing(manifest, files)
        except (OSError, ValueError) as error:
            raise UsageError(f"{snapshot} is no whole snapshot of a workspace: {error}.") from error
        pairs = zip(manifest.entries, listing.digests, strict=True)
        places = {digest: entry.path for entry, digest in pairs if digest}
        yield Recorded(
            events=events, listing=listing, read=lambda digest: _pieces(places[digest], files)
        )


def write_folder(state: Recorded, folder: Path) -> None:
    """Make `folder`, which must be missing or empty, that help state: wholly or not at all.

    Its files are copies of their own. Raises `UsageError` if a content is not what its hash says,
    `RuntimeFailure` if the disk fails.
    """
    try:
        with _new_folder(folder) as part:
            journal = os.open(part / FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(journal, "wb") as file:
                file.write(state.journal)
            if state.listing:
                _write_workspace(state, state.listing, part / WORKSPACE)
    except OSError as error:
        raise RuntimeFailure(f"{folder} can not be written: {error}.") from error


def write_pieces(descriptor: int, pieces: Iterable[bytes], digest: str) -> None:
    """Write a content, with holes where it has only zeros. Raises `UsageError` if it is another."""
    found, size = hashlib.sha256(), 0
    for piece in pieces:
        found.update(piece)
        if piece.count(0) == len(piece):
            os.lseek(descriptor, len(piece), os.SEEK_CUR)
        else:
            _write(descriptor, piece)
        size += len(piece)
    os.ftruncate(descriptor, size)
    if found.hexdigest() != digest:
        raise UsageError(f"the content {digest[:12]} is damaged: it has another hash.")


# ------------------------------------------------------------------------------------ reading


def _nothing(digest: str) -> Iterable[bytes]:
    raise KeyError(digest)


def _listing(manifest: Manifest, files: Folders) -> Listing:
    digests = [
        _digest(entry, files) if entry.kind == "file" else None for entry in manifest.entries
    ]
    return Listing(manifest=manifest, digests=tuple(digests))


def _digest(entry: Entry, files: Folders) -> str:
    found, size = hashlib.sha256(), 0
    for piece in _pieces(entry.path, files):
        found.update(piece)
        size += len(piece)
    if size != entry.size:
        raise ValueError(f"{entry.path!r} is of another size")
    return found.hexdigest()


def _pieces(path: str, files: Folders) -> Iterator[bytes]:
    name, folder = files.of(_here(path))
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        while piece := os.read(descriptor, PIECE):
            yield piece
    finally:
        os.close(descriptor)


def _here(name: str) -> str:
    """A name of a manifest as this machine's functions take it."""
    return os.fsdecode(name.encode("latin-1"))


# ------------------------------------------------------------------------------------ writing


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """A folder to be filled, which gets its name when the block ends well."""
    if os.path.lexists(folder) and not (folder.is_dir() and not any(folder.iterdir())):
        raise UsageError(f"{folder} is there already; name a new or an empty folder.")
    part = folder.with_name(f".{folder.name}.{secrets.token_hex(8)}.part")
    part.mkdir(mode=0o700, parents=True)
    try:
        yield part
        part.rename(folder)
    except BaseException:
        remove_tree(part)
        raise


def _write_workspace(state: Recorded, listing: Listing, snapshot: Path) -> None:
    (snapshot / FILES).mkdir(mode=0o700, parents=True)
    entries = [_entry_here(entry) for entry in listing.manifest.entries]
    with Folders(snapshot / FILES, writing=True) as files:
        for entry, digest in zip(entries, listing.digests, strict=True):
            _put(entry, digest, state, files)
        for entry in reversed(entries):  # from within: a closed folder can not be filled
            if entry.kind == "folder":
                set_mode(files.at(entry.path), entry, stored_mode(entry))
    manifest = msgspec.structs.replace(
        listing.manifest,
        entries=entries,
        as_they_were=passes_by_permissions(),
        left_out=[LeftOut(_here(left.path), left.why) for left in listing.manifest.left_out],
    )
    write_manifest(snapshot, manifest)


def _entry_here(entry: Entry) -> Entry:
    return msgspec.structs.replace(
        entry,
        path=_here(entry.path),
        target=_here(entry.target),
        same_as=None if entry.same_as is None else _here(entry.same_as),
    )


def _put(entry: Entry, digest: str | None, state: Recorded, files: Folders) -> None:
    name, folder = files.of(entry.path)
    if entry.kind == "folder":
        os.mkdir(name, 0o700, dir_fd=folder)
    elif entry.kind == "link":
        os.symlink(entry.target, name, dir_fd=folder)
        with suppress(PermissionError):
            os.chown(name, entry.uid, entry.gid, dir_fd=folder, follow_symlinks=False)
    elif entry.same_as is not None:
        _link(entry.same_as, entry.path, files)
    else:
        assert digest is not None  # noqa: S101 - Listing has made sure
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o600, dir_fd=folder)
        try:
            write_pieces(descriptor, state.read(digest), digest)
            set_mode(descriptor, entry, stored_mode(entry))
            os.utime(descriptor, ns=(entry.mtime_ns, entry.mtime_ns))
        finally:
            os.close(descriptor)


def _link(first: str, path: str, files: Folders) -> None:
    first_name, first_folder = files.of(first)
    first_folder = os.dup(first_folder)
    try:
        name, folder = files.of(path)
        os.link(first_name, name, src_dir_fd=first_folder, dst_dir_fd=folder, follow_symlinks=False)
    finally:
        os.close(first_folder)


def _write(descriptor: int, piece: bytes) -> None:
    left = memoryview(piece)
    while left:
        left = left[os.write(descriptor, left) :]
