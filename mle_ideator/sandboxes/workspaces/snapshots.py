"""A workspace's content in a folder that is never changed again.

    SNAPSHOT/files/          the files
    SNAPSHOT/manifest.json   what they are; written last

It can be moved. Files that two snapshots share are hard links of each other; that is safe since
agent code reaches no snapshot.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec

from mle_ideator.errors import SandboxError
from mle_ideator.sandboxes.trees import remove_tree
from mle_ideator.sandboxes.workspaces.copying import Signature, signature_of
from mle_ideator.sandboxes.workspaces.folders import Folders, passes_by_permissions, walk
from mle_ideator.types import Value

VERSION = 1
FILES, MANIFEST = "files", "manifest.json"
Kind = Literal["file", "folder", "link"]
KEPT_KINDS: tuple[str, ...] = ("file", "folder", "link")
_KEPT_MODE = 0o1777
"""Nothing that is run from a workspace may gain rights: set-user-id and its like are dropped."""


class Entry(Value, frozen=True, omit_defaults=True, gc=False):
    """A file, folder or link of a workspace.

    Names and targets are any bytes; in the manifest each byte is the character of that number.
    """

    path: str
    kind: Kind
    mode: int
    uid: int
    gid: int
    size: int = 0
    """Bytes of a file."""
    mtime_ns: int = 0
    """Of a file."""
    target: str = ""
    """Of a link, which may lead anywhere."""
    same_as: str | None = None
    """The path of an earlier entry that is the same file (a hard link)."""


class LeftOut(Value, frozen=True):
    """What stood in the workspace and is not kept, and why."""

    path: str
    why: str


class Manifest(Value, frozen=True, kw_only=True):
    """What a snapshot holds."""

    version: int = VERSION
    as_they_were: bool
    """Have the files the modes and owners that they had? A user can only note down all of these."""
    root: Entry
    """The workspace itself."""
    entries: list[Entry]
    """A folder comes before what is in it."""
    left_out: list[LeftOut]


def entry_of(path: str, kind: str, status: os.stat_result, target: str = "") -> Entry:
    """An entry for what has this status; `kind` is one of `KEPT_KINDS`."""
    is_file = kind == "file"
    return Entry(
        path=path,
        kind=kind,  # type: ignore[arg-type]
        mode=status.st_mode & _KEPT_MODE,
        uid=status.st_uid,
        gid=status.st_gid,
        size=status.st_size if is_file else 0,
        mtime_ns=status.st_mtime_ns if is_file else 0,
        target=target,
    )


# --------------------------------------------------------------------------------- reading


def read_manifest(folder: Path) -> Manifest:
    """Raises `SandboxError` if `folder` is no snapshot, or none that can be used."""
    return _read_manifest(folder, _identity(folder))


def check_files(folder: Path) -> None:
    """Raises `SandboxError` if what the manifest names is not there in full.

    Looked at once by this process: a snapshot does not change.
    """
    _check_files(folder, _identity(folder))


def _identity(folder: Path) -> Signature:
    try:
        return signature_of((folder / MANIFEST).stat())
    except OSError as error:
        raise SandboxError(f"{folder} is no snapshot of a workspace: {error}") from error


@lru_cache(maxsize=4)
def _read_manifest(folder: Path, identity: Signature) -> Manifest:
    content = (folder / MANIFEST).read_bytes()
    try:
        version = msgspec.json.decode(content, type=_Versioned).version
        if version != VERSION:
            raise SandboxError(
                f"{folder} is a snapshot of version {version}, which is not known here "
                f"(this is {VERSION}): make it again, or use the release that made it."
            )
        manifest = msgspec.json.decode(content, type=Manifest)
        entries = [_read(entry) for entry in manifest.entries]
    except (msgspec.DecodeError, UnicodeError) as error:
        raise SandboxError(f"the snapshot {folder} is damaged: its manifest: {error}") from error
    for entry in entries:
        if "\0" in entry.path or not {"", ".", ".."}.isdisjoint(entry.path.split("/")):
            raise SandboxError(f"the snapshot {folder} is damaged: a path {entry.path!r}")
    return msgspec.structs.replace(manifest, entries=entries)


@lru_cache(maxsize=1024)
def _check_files(folder: Path, identity: Signature) -> None:
    with Folders(folder / FILES) as files:
        found = {path: (kind, status) for path, kind, status in walk(files)}
    for entry in _read_manifest(folder, identity).entries:
        kind, status = found.get(entry.path, ("missing", None))
        if kind != entry.kind or (status and kind == "file" and status.st_size != entry.size):
            raise SandboxError(f"the snapshot {folder} is damaged: {entry.path!r} is {_odd(kind)}")


def _odd(kind: str) -> str:
    return "of another size" if kind == "file" else kind


class _Versioned(msgspec.Struct):
    version: int


# --------------------------------------------------------------------------------- writing


def write_manifest(folder: Path, manifest: Manifest) -> None:
    written = msgspec.structs.replace(
        manifest,
        entries=[_written(entry) for entry in manifest.entries],
        left_out=[LeftOut(_as_bytes(one.path), one.why) for one in manifest.left_out],
    )
    (folder / MANIFEST).write_bytes(msgspec.json.encode(written))


def stored_mode(entry: Entry) -> int:
    """The mode that it has in a snapshot: as it was, but readable by whoever made the snapshot."""
    if passes_by_permissions():
        return entry.mode
    return entry.mode | (stat.S_IRWXU if entry.kind == "folder" else stat.S_IRUSR | stat.S_IWUSR)


@contextmanager
def new_snapshot(folder: Path) -> Iterator[Path]:
    """A folder to be filled; it gets its name when the block ends well, and else is removed.

    What a process left that was killed in the midst of it is removed by the next one.
    """
    if os.path.lexists(folder):
        raise SandboxError(f"{folder} exists already, and a snapshot is never changed.")
    for left in folder.parent.glob(f"*{_PART}"):
        _remove_if_left(left)
    part, lock = _locked_folder(folder)
    try:
        (part / FILES).mkdir(mode=0o700)
        yield part
        part.rename(folder)
    except BaseException:
        remove_tree(part)
        raise
    finally:
        os.close(lock)


_PART = ".snapshot-part"


def _locked_folder(folder: Path) -> tuple[Path, int]:
    """It is known for what it is only once it is locked, so that nobody takes it for left over."""
    new = folder.with_name(f".{secrets.token_hex(8)}.new")
    new.mkdir(mode=0o700, parents=True)
    lock = os.open(new, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return new.rename(new.with_suffix(_PART)), lock


def _remove_if_left(part: Path) -> None:
    """Nobody holds the lock of a folder whose maker was killed."""
    with suppress(OSError):
        lock = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_tree(part)
        finally:
            os.close(lock)


def _written(entry: Entry) -> Entry:
    return _renamed(entry, _as_bytes)


def _read(entry: Entry) -> Entry:
    return _renamed(entry, _from_bytes)


def _renamed(entry: Entry, change: Callable[[str], str]) -> Entry:
    if entry.path.isascii() and entry.target.isascii() and (entry.same_as or "").isascii():
        return entry
    return msgspec.structs.replace(
        entry,
        path=change(entry.path),
        target=change(entry.target),
        same_as=entry.same_as and change(entry.same_as),
    )


def _as_bytes(name: str) -> str:
    return os.fsencode(name).decode("latin-1")


def _from_bytes(name: str) -> str:
    return os.fsdecode(name.encode("latin-1"))
