"""A help state wherever it lies: its events, and what its workspace holds.

Folders, archives and stores are each read into a `Recorded` and written from one, so there is one
way to check, to name and to copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

from mle_ideator.errors import UsageError
from mle_ideator.journal import Asked, Decided, Event, Rejected, Rerun, Resumed, Solved, Started
from mle_ideator.sandboxes.workspaces.snapshots import VERSION, Entry, Manifest
from mle_ideator.types import Decision, Scores, SeekHelp, Value

LONGEST_JOURNAL = 1 << 28
"""Bytes."""
PIECE = 1 << 20
"""Bytes of a file that are held in memory at a time."""
_MODES = 0o1777
_LARGEST_ID = 2**32 - 2
_LATEST_NS = 2**62


class Listing(Value, frozen=True, kw_only=True):
    """What a workspace holds: the snapshot's manifest, with the content of each file by its hash.

    Names stand as in a manifest: each byte is the character of that number.
    """

    manifest: Manifest
    digests: tuple[str | None, ...]
    """SHA-256 of each entry that is a file, in the order of the manifest's entries."""

    def __post_init__(self) -> None:
        _check(self.manifest)
        kinds = [entry.kind == "file" for entry in self.manifest.entries]
        if [digest is not None for digest in self.digests] != kinds:
            raise ValueError("it does not tell the content of each file")
        if not all(digest is None or is_digest(digest) for digest in self.digests):
            raise ValueError("a hash that is none")
        contents, sizes = {}, self.contents
        for entry, digest in zip(self.manifest.entries, self.digests, strict=True):
            contents[entry.path] = digest
            if entry.same_as is not None and contents[entry.same_as] != digest:
                raise ValueError(f"{entry.path!r} is not the same as {entry.same_as!r}")
            if digest is not None and sizes[digest] != entry.size:
                raise ValueError(f"{entry.path!r} has two sizes")

    @property
    def contents(self) -> dict[str, int]:
        """Bytes of each content, once each."""
        entries = zip(self.manifest.entries, self.digests, strict=True)
        return {digest: entry.size for entry, digest in entries if digest is not None}


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A help state that can be read."""

    events: tuple[Event, ...]
    """From `Started` to the `Asked` of its help request, without private scores of solutions."""
    listing: Listing | None
    """`None` where nothing was written."""
    read: Callable[[str], Iterable[bytes]]
    """A content by its hash, in pieces; whoever takes them checks the hash."""

    @cached_property
    def journal(self) -> bytes:
        return as_lines(self.events)

    @property
    def started(self) -> Started:
        started = self.events[0]
        assert isinstance(started, Started)  # noqa: S101 - see `until_asked`
        return started

    @property
    def asked(self) -> Asked:
        return asked_in(self.events)


def is_digest(text: str) -> bool:
    return len(text) == 64 and set(text) <= set("0123456789abcdef")


def until_asked(events: Sequence[Event], what: str) -> tuple[Event, ...]:
    """The events of a help state as they are kept. Raises `UsageError` if they are of none."""
    if not events or not isinstance(events[0], Started) or not _asks(events):
        raise UsageError(
            f"{what} holds no help state: its journal must begin with the start of a session and "
            "end with a help request."
        )
    return tuple(without_private(event) for event in events)


def _asks(events: Sequence[Event]) -> bool:
    decided = [event for event in events if isinstance(event, Decided)][-1:]
    match (*decided, events[-1]):
        case Decided(
            step=step, decision=Decision(action=SeekHelp(request=request))
        ), Asked() as asked:
            return (step, request) == (asked.step, asked.request)
    return False


def asked_in(events: Sequence[Event]) -> Asked:
    """The help request of the events of a help state."""
    asked = events[-1]
    assert isinstance(asked, Asked)  # noqa: S101 - see `until_asked`
    return asked


def without_private(event: Event) -> Event:
    """Without private scores of solutions, which no rollout is rewarded on.

    The baseline's stays: it tells whether the task's data are the same.
    """
    replace = msgspec.structs.replace
    match event:
        case Solved(solution=solution):
            return replace(event, solution=replace(solution, scores=_public(solution.scores)))
        case Rerun(scores=scores):
            return replace(event, scores=_public(scores))
        case Rejected(grade=grade):
            return replace(event, grade=replace(grade, private=None))
    return event


def _public(scores: Scores) -> Scores:
    return msgspec.structs.replace(scores, private=None)


def as_lines(events: Iterable[Event]) -> bytes:
    """As in a journal, one event a line."""
    return b"".join(msgspec.json.encode(event) + b"\n" for event in events)


def events_in(journal: bytes, what: str) -> list[Event]:
    """The other way round. Raises `UsageError`."""
    try:
        return [msgspec.json.decode(line, type=Event) for line in journal.splitlines()]
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UsageError(
            f"the journal of {what} can not be read: {error}; it is damaged, or of another version "
            "of mle-ideator."
        ) from error


def parts_of(events: Sequence[Event]) -> Iterator[Sequence[Event]]:
    """A journal cut so that a state and those reached from it share their common parts.

    A part ends with a help request. The one that a rollout asks again, after `Resumed`, ends none:
    what is new in the state that it reaches is one part.
    """
    start = 0
    asked_again = isinstance(events[0], Resumed)
    for place, event in enumerate(events, start=1):
        if isinstance(event, Asked) and asked_again and place < len(events):
            asked_again = False
        elif isinstance(event, Asked) or place == len(events):
            yield events[start:place]
            start = place
            asked_again = place < len(events) and isinstance(events[place], Resumed)


def manifest_in(content: bytes, what: str) -> Manifest:
    """The manifest of a snapshot, with names as they stand there. Raises `UsageError`."""
    try:
        version = msgspec.json.decode(content, type=_Versioned).version
        if version != VERSION:
            raise UsageError(
                f"the workspace of {what} is a snapshot of version {version}, which is not known "
                f"here (this is {VERSION})."
            )
        return msgspec.json.decode(content, type=Manifest)
    except msgspec.MsgspecError as error:
        raise UsageError(f"the workspace of {what} is damaged: its manifest: {error}.") from error


class _Versioned(msgspec.Struct):
    version: int


def _check(manifest: Manifest) -> None:
    """Raises `ValueError` if it could lead out of its folder or can not be made real."""
    kinds = {"": "folder"}
    files: set[str] = set()
    for entry in (manifest.root, *manifest.entries):
        if not _can_be(entry):
            raise ValueError(f"{entry.path!r} has attributes that nothing has")
    for entry in manifest.entries:
        path, folder = entry.path, entry.path.rpartition("/")[0]
        if not {"", ".", ".."}.isdisjoint(path.split("/")) or not _is_name(path):
            raise ValueError(f"a path {path!r}")
        if path in kinds or kinds.get(folder) != "folder":
            raise ValueError(f"{path!r} is there twice or is in no folder")
        if entry.kind == "link" and not (entry.target and _is_name(entry.target)):
            raise ValueError(f"{path!r} leads nowhere")
        if entry.same_as is not None and entry.same_as not in files:
            raise ValueError(f"{path!r} is the same as {entry.same_as!r}, which is no file")
        kinds[path] = entry.kind
        if entry.kind == "file":
            files.add(path)


def _is_name(text: str) -> bool:
    return "\0" not in text and all(ord(character) < 256 for character in text)


def _can_be(entry: Entry) -> bool:
    ids = 0 <= entry.uid <= _LARGEST_ID and 0 <= entry.gid <= _LARGEST_ID
    return (
        ids and entry.mode & ~_MODES == 0 and entry.size >= 0 and abs(entry.mtime_ns) < _LATEST_NS
    )
