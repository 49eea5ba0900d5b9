"""Help states, each once: an index in SQLite, and contents by their hash in a folder beside it."""

from __future__ import annotations

import zlib
from collections.abc import Collection
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from mle_ideator.errors import RuntimeFailure, UsageError
from mle_ideator.journal import Event, Started
from mle_ideator.replay import help_state_at
from mle_ideator.rl.states.archives import opened_archive
from mle_ideator.rl.states.cards import card_of
from mle_ideator.rl.states.contents import Contents
from mle_ideator.rl.states.folders import opened_folder, write_folder
from mle_ideator.rl.states.identity import identity_of
from mle_ideator.rl.states.index import Index
from mle_ideator.rl.states.recorded import (
    Listing,
    Recorded,
    as_lines,
    events_in,
    parts_of,
    until_asked,
)
from mle_ideator.rl.values import Kind, StateCard
from mle_ideator.types import HelpState

_CANDIDATES = 5


class StateStore:
    """Help states in `path`, an SQLite file that is made if it is missing, and `path`'s `.files`.

    Any number of processes may read and add at once, each with a store of its own; a process that
    is killed leaves each state whole or not there. Threads may share one.
    Methods raise `UsageError` for a state that is not there or is damaged, `RuntimeFailure` where
    the disk fails.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._index = Index(path)  # first: what is no store gets no folder beside it
            self._contents = Contents(path.with_suffix(".files"))
        except OSError as error:
            raise UsageError(f"{path} can not be a store: {error}.") from error

    @classmethod
    def that_is_there(cls, path: Path) -> Self:
        """Open one without making it. Raises `UsageError` if it is missing."""
        if not path.is_file():
            raise UsageError(
                f"there is no store of help states at {path}; make one with `collect`."
            )
        return cls(path)

    def close(self) -> None:
        self._index.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # ------------------------------------------------------------------------------ adding

    def add(
        self, folder: Path, *, parent: str | None = None, task: str | None = None
    ) -> tuple[StateCard, bool]:
        """Keep the help state in a folder; tells its card, and whether it was not there yet.

        `parent` is the state, in this store, that a rollout reached it from. `task` is the task's
        spec if it is not the one that the session had. What is there already keeps its card.
        """
        with opened_folder(folder) as state:
            return self.put(state, parent=parent, task=task)

    def add_packed(
        self, archive: bytes, *, parent: str | None = None, task: str | None = None
    ) -> tuple[StateCard, bool]:
        """Likewise, what `pack_state` made."""
        with opened_archive(archive) as (state, _):
            return self.put(state, parent=parent, task=task)

    def put(
        self, state: Recorded, *, parent: str | None = None, task: str | None = None
    ) -> tuple[StateCard, bool]:
        """Likewise, wherever it lies."""
        depth = 0 if parent is None else self.card(parent).depth + 1
        return self.put_with(state, card_of(state, task=task, parent=parent, depth=depth))

    def put_with(self, state: Recorded, card: StateCard) -> tuple[StateCard, bool]:
        """Keep a help state under a card that was made for it."""
        if known := self._index.card(card.id):
            return known, False
        listing = state.listing
        try:
            journal = [self._contents.add(as_lines(part)) for part in parts_of(state.events)]
            for digest, size in listing.contents.items() if listing else ():
                self._contents.put(digest, size, state.read(digest))
        except OSError as error:
            raise RuntimeFailure(f"{self.path} can not be added to: {error}.") from error
        if self._index.add(card, journal, _packed(listing) if listing else None):
            return card, True
        return self.card(card.id), False  # another process was first

    # ----------------------------------------------------------------------------- finding

    def card(self, identity: str) -> StateCard:
        card = self._index.card(identity)
        if card is None:
            raise UsageError(f"there is no help state {identity} in {self.path}.")
        return card

    def cards(
        self,
        *,
        task: str | None = None,
        kind: Kind | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> list[StateCard]:
        """In the order of adding; `after` is the id of the one to go on after."""
        number = 0 if after is None else self._index.number(self.card(after).id) or 0
        return self._index.cards(task, kind, limit, number)

    def chosen(self, tasks: Collection[str], *, reached: bool) -> list[StateCard]:
        """Those of these tasks (none: of all), with or without those that rollouts reached."""
        return [
            card
            for card in self.cards()
            if (not tasks or card.task in tasks) and (reached or card.parent is None)
        ]

    def count(self) -> int:
        return self._index.count()

    def tasks(self) -> dict[str, int]:
        """How many states each task has, by its spec."""
        return self._index.tasks()

    def find(self, prefix: str) -> str:
        """The id that begins so, as git does it. Raises `UsageError` unless there is just one."""
        prefix = prefix.lower()
        found = self._index.starting_with(prefix, _CANDIDATES + 1) if _is_hex(prefix) else []
        if not found:
            raise UsageError(f"there is no help state {prefix!r} in {self.path}.")
        if len(found) > 1:
            shown = ", ".join(identity[:16] for identity in found[:_CANDIDATES])
            more = " and more" if len(found) > _CANDIDATES else ""
            raise UsageError(f"{prefix!r} begins several help states: {shown}{more}; write more.")
        return found[0]

    # ----------------------------------------------------------------------------- reading

    def events(self, identity: str) -> tuple[Event, ...]:
        """From the start of its session to its help request, without private scores."""
        return self.recorded(identity).events

    def started(self, identity: str) -> Started:
        """How its session began."""
        first = self.events(identity)[0]
        if not isinstance(first, Started):
            raise UsageError(f"the help state {identity[:12]} does not begin with its session.")
        return first

    def help_state(self, identity: str) -> HelpState:
        """What an ideator sees of it."""
        return help_state_at(self.events(identity))

    def write_to(self, identity: str, folder: Path) -> None:
        """Put it on disk as `folder`, which must be missing or empty: `journal.jsonl`, and the
        snapshot `workspace/`, if there is one. All files are private copies, free to be changed."""
        write_folder(self.recorded(identity), folder)

    def recorded(self, identity: str) -> Recorded:
        """It, to be read from here."""
        parts = self._index.parts(identity)
        if parts is None:
            raise UsageError(f"there is no help state {identity} in {self.path}.")
        digests, workspace = parts
        what = f"the help state {identity[:12]}"
        journal = b"".join(self._contents.get(digest) for digest in digests)
        return Recorded(
            events=until_asked(events_in(journal, what), what),
            listing=None if workspace is None else _unpacked(workspace, what),
            read=self._contents.pieces,
        )

    def check(self) -> list[str]:
        """What is damaged or lacking, a sentence each. Reads everything."""
        found = [f"{self.path}: {damage}" for damage in self._index.damages()]
        good: set[str] = set()
        for card in self._index.cards(None, None, None, 0):
            try:
                self._check(card.id, good)
            except (UsageError, OSError) as error:
                found.append(f"state {card.id[:12]}: {error}")
        return found

    def _check(self, identity: str, good: set[str]) -> None:
        state = self.recorded(identity)
        if identity_of(state) != identity:
            raise UsageError("it is not the state that its id says.")
        for digest in state.listing.contents if state.listing else ():
            if digest not in good:
                for _ in self._contents.pieces(digest):
                    pass
                good.add(digest)


def _packed(listing: Listing) -> bytes:
    return zlib.compress(msgspec.json.encode(listing))


def _unpacked(packed: bytes, what: str) -> Listing:
    try:
        return msgspec.json.decode(zlib.decompress(packed), type=Listing)
    except (zlib.error, msgspec.MsgspecError) as error:
        raise UsageError(f"the workspace of {what} is damaged: {error}.") from error


def _is_hex(text: str) -> bool:
    return bool(text) and set(text) <= set("0123456789abcdef")
