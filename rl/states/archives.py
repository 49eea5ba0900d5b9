"""A help state as one file, for a worker on another machine or a reader somewhere else.

It is a zip:

    state.json                what it is, its id, what is known of it, the hash of each file
    journal.jsonl             its events, without private scores of solutions
    workspace/manifest.json   the workspace's files, folders and links by name
    contents/SHA256           each content once

No member is named by a workspace's file, so none can lead out of a folder. The same state gives the
same bytes.
"""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec

from mle_ideator.errors import UsageError
from mle_ideator.journal import FILE
from mle_ideator.rl.states.folders import opened_folder, write_folder
from mle_ideator.rl.states.identity import identity_of
from mle_ideator.rl.states.recorded import (
    LONGEST_JOURNAL,
    PIECE,
    Listing,
    Recorded,
    events_in,
    is_digest,
    manifest_in,
    until_asked,
)
from mle_ideator.rl.values import StateCard
from mle_ideator.types import Value

FORMAT, VERSION = "mle-ideator help state", 1
MOST_BYTES = 1 << 32
"""Of all members together, unpacked."""
MOST_MEMBERS = 200_000
_HEAD, _MANIFEST, _CONTENTS = "state.json", "workspace/manifest.json", "contents/"
_LONGEST = {_HEAD: 1 << 26, FILE: LONGEST_JOURNAL, _MANIFEST: 1 << 26}
_WITHOUT_TIME = (1980, 1, 1, 0, 0, 0)
_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError),
    RuntimeError,
)
"""What reading a zip that is none raises."""


class _Head(Value, frozen=True, kw_only=True):
    format: str = FORMAT
    version: int = VERSION
    id: str
    card: StateCard | None = None
    digests: tuple[str | None, ...] | None = None
    """Of the entries of the manifest; `None` without a workspace."""


def pack_state(folder: Path) -> bytes:
    """The help state in a folder as one file. Raises `UsageError` if there is none."""
    with opened_folder(folder) as state:
        return packed(state)


def unpack_state(archive: bytes | Path, folder: Path) -> str:
    """Make `folder`, which must be missing or empty, the help state in an archive; tells its id.

    Wholly or not at all: all hashes and the id are checked. Links of the workspace are made as they
    were, wherever they lead. Raises `UsageError` if it is damaged or of another version.
    """
    with opened_archive(archive) as (state, _):
        identity = identity_of(state)
        write_folder(state, folder)
    return identity


def packed(state: Recorded, card: StateCard | None = None) -> bytes:
    """A help state as one file, with what is known of it. The same gives the same bytes.

    Raises `UsageError` if it is larger than any reader takes.
    """
    target, listing = io.BytesIO(), state.listing
    size = sum(listing.contents.values()) if listing else 0
    if size + len(state.journal) > MOST_BYTES - _LONGEST[_MANIFEST]:
        raise UsageError(f"the workspace holds {size} bytes, too much for one file.")
    head = _Head(id=identity_of(state), card=card, digests=listing.digests if listing else None)
    with zipfile.ZipFile(target, "w") as archive:
        _add(archive, _HEAD, msgspec.json.encode(head))
        _add(archive, FILE, state.journal)
        if listing:
            _add(archive, _MANIFEST, msgspec.json.encode(listing.manifest))
            for digest, size in listing.contents.items():
                with archive.open(_member(_CONTENTS + digest, size), "w") as member:
                    for piece in state.read(digest):
                        member.write(piece)
    return target.getvalue()


@contextmanager
def opened_archive(
    archive: bytes | Path, what: str = ""
) -> Iterator[tuple[Recorded, StateCard | None]]:
    """The help state in an archive and its card, which may be read until the block ends.

    Its id is checked here, the hash of a content by whoever takes it. Raises `UsageError`.
    """
    what = what or (str(archive) if isinstance(archive, Path) else "the packed help state")
    with _told(what):
        source: IO[bytes] = archive.open("rb") if isinstance(archive, Path) else io.BytesIO(archive)
    with source:
        with _told(what):
            opened = zipfile.ZipFile(source)
            state, card = _read(opened, what)
        yield state, card


# ------------------------------------------------------------------------------------ writing


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    archive.writestr(_member(name, len(content)), content)


def _member(name: str, size: int) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, _WITHOUT_TIME)
    member.compress_type = zipfile.ZIP_DEFLATED
    member.create_system = 3  # as on Unix, wherever it is made
    member.external_attr = (stat.S_IFREG | 0o600) << 16
    member.file_size = size
    return member


# ------------------------------------------------------------------------------------ reading


def _read(archive: zipfile.ZipFile, what: str) -> tuple[Recorded, StateCard | None]:
    members = _members(archive)
    head = _head(_content(archive, members, _HEAD))
    events = until_asked(events_in(_content(archive, members, FILE), what), what)
    listing = None
    if head.digests is not None:
        manifest = manifest_in(_content(archive, members, _MANIFEST), what)
        listing = Listing(manifest=manifest, digests=head.digests)
    _check_contents(members, listing)

    def read(digest: str) -> Iterator[bytes]:
        with _told(what), archive.open(members[_CONTENTS + digest]) as member:
            while piece := member.read(PIECE):
                yield piece

    state = Recorded(events=events, listing=listing, read=read)
    if identity_of(state) != head.id or (head.card and head.card.id != head.id):
        raise ValueError("it is not the state that its id says")
    return state, head.card


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """By name, if they are what an archive of a state holds, and not too much of it."""
    infos = archive.infolist()
    members = {info.filename: info for info in infos}
    if len(members) != len(infos):
        raise ValueError("a member is there twice")
    if len(infos) > MOST_MEMBERS or sum(info.file_size for info in infos) > MOST_BYTES:
        raise ValueError(f"it holds more than {MOST_MEMBERS} members or {MOST_BYTES} bytes")
    for info in infos:
        name = info.filename
        if name not in _LONGEST and not is_digest(name.removeprefix(_CONTENTS)):
            raise ValueError(f"a member {name!r}")
        if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
            raise ValueError(f"{name!r} is no file")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name!r} is compressed in a way that is not used here")
    return members


def _content(archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], name: str) -> bytes:
    if name not in members:
        raise ValueError(f"it has no {name}")
    if members[name].file_size > _LONGEST[name]:
        raise ValueError(f"{name} is longer than {_LONGEST[name]} bytes")
    return archive.read(members[name])


def _head(content: bytes) -> _Head:
    known = msgspec.json.decode(content, type=dict[str, Any])
    if known.get("format") != FORMAT:
        raise ValueError("it is of another format")
    if known.get("version") != VERSION:
        raise UsageError(
            f"it is a help state of version {known.get('version')}, which is not known here (this "
            f"is {VERSION}): read it with the release of mle-ideator that made it."
        )
    return msgspec.convert(known, type=_Head)


def _check_contents(members: dict[str, zipfile.ZipInfo], listing: Listing | None) -> None:
    wanted = listing.contents if listing else {}
    found = {
        name.removeprefix(_CONTENTS): info.file_size
        for name, info in members.items()
        if name not in _LONGEST
    }
    if found != wanted:
        raise ValueError("it does not hold the contents that its manifest names")


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Whatever is wrong with an archive is wrong with the call."""
    try:
        yield
    except _BROKEN as error:
        reason = str(error) or type(error).__name__
        raise UsageError(f"{what} is no help state, or a damaged one: {reason}.") from error
