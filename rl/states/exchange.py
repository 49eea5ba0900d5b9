"""A help state of a store as one file that can be mailed, and back into another store."""

from __future__ import annotations

from pathlib import Path

from mle_ideator.errors import UsageError
from mle_ideator.files import replace_file
from mle_ideator.rl.states.archives import opened_archive, packed
from mle_ideator.rl.states.cards import card_of
from mle_ideator.rl.states.recorded import Recorded, is_digest
from mle_ideator.rl.states.store import StateStore
from mle_ideator.rl.values import StateCard


def export_state(store: StateStore, identity: str, file: Path) -> None:
    """Write a help state with its card to a file, whole or not at all.

    It holds no private score of a solution. The same state gives the same bytes.
    """
    content = packed(store.recorded(identity), store.card(identity))
    try:
        replace_file(file, content)
    except OSError as error:
        raise UsageError(f"{file} can not be written: {error}.") from error


def import_state(store: StateStore, file: Path) -> tuple[StateCard, bool]:
    """Keep the help state in a file; tells its card, and whether it was not there yet.

    It keeps its depth and its parent, which need not be there. Nothing of the file is trusted: all
    hashes and the id are checked, and a workspace with a link that leads out of it is refused.
    Raises `UsageError`, and keeps no state, for what is no help state, a damaged one, or one of
    another version.
    """
    with opened_archive(file) as (state, told):
        _refuse_outward_links(state, file)
        return store.put_with(state, _card(state, told, file))


def _card(state: Recorded, told: StateCard | None, file: Path) -> StateCard:
    """As the state tells it; where it came from and when is taken from the card."""
    if told is None:
        return card_of(state)
    if told.depth < 0 or not (told.parent is None or is_digest(told.parent)):
        raise UsageError(f"{file} holds a card that can not be: its parent or its depth.")
    found = card_of(
        state,
        task=told.task,
        parent=told.parent,
        depth=told.depth,
        collected_at=told.collected_at,
    )
    if found != told:
        differing = [n for n in told.__struct_fields__ if getattr(told, n) != getattr(found, n)]
        raise UsageError(f"{file} holds a card of another state: its {' and '.join(differing)}.")
    return found


def _refuse_outward_links(state: Recorded, file: Path) -> None:
    entries = state.listing.manifest.entries if state.listing else ()
    links = {entry.path: entry.target for entry in entries if entry.kind == "link"}
    for path, target in links.items():
        if _leads_out(path, target):
            raise UsageError(
                f"{file} is refused: in its workspace the link {path!r} leads out, to {target!r}."
            )


def _leads_out(path: str, target: str) -> bool:
    """Names after a link's own `..` may pass through other links, but these do not lead out."""
    if target.startswith("/"):
        return True
    names = [name for name in target.split("/") if name not in ("", ".")]
    up = names.count("..")
    return up > path.count("/") or names[:up] != [".."] * up
