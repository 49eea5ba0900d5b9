"""The help states of a run: each help request, with the workspace that was kept of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mle_ideator.errors import UsageError
from mle_ideator.journal import Asked, Event, Resumed, Stepped, read_journal
from mle_ideator.rl.states.archives import packed
from mle_ideator.rl.states.folders import opened_state
from mle_ideator.rl.states.recorded import Recorded, until_asked
from mle_ideator.rl.states.store import StateStore
from mle_ideator.rl.values import StateCard
from mle_ideator.solutions import kept_workspace
from mle_ideator.types import Value


class Harvested(Value, frozen=True, kw_only=True):
    """What a run brought."""

    new: tuple[StateCard, ...] = ()
    known: tuple[StateCard, ...] = ()
    """Those that were in the store already."""
    problems: tuple[str, ...] = ()
    """Why a help request became no state, a sentence each."""


def harvest(run: Path, store: StateStore, *, parent: str | None = None) -> Harvested:
    """Make each help request of a run folder a help state; the run may go on meanwhile.

    The run has to be made with `keep_help_states`. `parent` is the state, in `store`, that the run
    is a rollout from: then only what was asked later counts, and has it as its parent. Raises
    `UsageError` if there is no run.
    """
    new: list[StateCard] = []
    known: list[StateCard] = []
    problems: list[str] = []
    begun = store.card(parent).steps + 1 if parent else 0
    events = read_journal(run)
    for step, place in requests_in(events).items():
        if step <= begun:
            continue
        try:
            with _opened(run, step, events[: place + 1]) as state:
                card, is_new = store.put(state, parent=parent)
        except UsageError as error:
            problems.append(f"step {step}: {error}")
        else:
            (new if is_new else known).append(card)
    return Harvested(new=tuple(new), known=tuple(known), problems=tuple(problems))


def packed_request(run: Path, step: int) -> bytes:
    """The help state of the help request at a step of a run folder, as `pack_state` makes it.

    Raises `UsageError` if nothing was asked there or its workspace was not kept.
    """
    events = read_journal(run)
    place = requests_in(events).get(step)
    if place is None:
        raise UsageError(f"step {step} of {run} is no help request that an ideator was asked.")
    with _opened(run, step, events[: place + 1]) as state:
        return packed(state)


def requests_in(events: Sequence[Event]) -> dict[int, int]:
    """By step, where its help request stands. One that was broken off and decided anew counts as it
    was the last time, or not at all."""
    places: dict[int, int] = {}
    done = 0
    for place, event in enumerate(events):
        match event:
            case Asked(step=step):
                places[step] = place
            case Stepped(step=stepped):
                done = stepped.number
            case Resumed():
                places.pop(done + 1, None)
    return places


@contextmanager
def _opened(run: Path, step: int, events: Sequence[Event]) -> Iterator[Recorded]:
    snapshot = kept_workspace(run, step)
    if not snapshot.is_dir():
        raise UsageError(
            f"its workspace was not kept ({snapshot} is missing); run with "
            "`--set keep_help_states=true`."
        )
    with opened_state(until_asked(events, str(run)), snapshot) as state:
        yield state
