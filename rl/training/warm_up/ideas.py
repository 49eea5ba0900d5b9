"""Ideas for help states, from an ideator: asked for, executed if wished, kept as they come.

They are lines of a JSON file, so that a kill loses nothing but what was under way: the same call
goes on, and asks again only where ideator or runtime broke.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from mle_ideator.errors import AgentError, MleIdeatorError, UsageError
from mle_ideator.files import lock
from mle_ideator.ideators.answering import proposal_of
from mle_ideator.protocols import Ideator
from mle_ideator.rl.evaluation.trying import drawn_seed
from mle_ideator.rl.rollouts import Rollouts, attempted
from mle_ideator.rl.values import RolloutJob, StateCard
from mle_ideator.types import HelpState, Proposal, Value

T = TypeVar("T", bound=Value)


class Place(NamedTuple):
    """What is asked once."""

    state: str
    number: int


class Source(Value, frozen=True, kw_only=True):
    """Head of the file: what all its lines have in common."""

    ideas: int = 1
    """Version of the file's form."""
    ideator: str
    options: dict[str, Any]
    seed: int


class Note(Value, frozen=True, kw_only=True):
    """One answer of the ideator."""

    state: str
    number: int
    """Of the answers to this state."""
    task: str
    proposal: Proposal | None
    """`None` if the ideator broke."""
    reward: float | None = None
    """Of its execution; `None` if it was not executed, or the runtime broke."""
    broken: str = ""
    """Why there is no proposal or no reward, if something broke."""


@dataclass(frozen=True, kw_only=True)
class Asking:
    """Who is asked, how, and what is done with the answers."""

    ideator: Ideator
    rollouts: Rollouts | None
    """What executes ideas; `None` if that is not wanted."""
    help_state: Callable[[str], HelpState]
    seed: int
    idea_s: float

    def settled(self, note: Note | None) -> bool:
        """Is there nothing left to do?"""
        if note is None or note.proposal is None:
            return False
        return self.rollouts is None or note.proposal.idea is None or note.reward is not None

    async def noted(self, card: StateCard, number: int, known: Note | None) -> Note:
        """An answer, and its reward if that is wanted; what is known is not asked for again."""
        seed = drawn_seed(card.id, self.seed, number)
        note = Note(state=card.id, number=number, task=card.task, proposal=None)
        proposal = known.proposal if known else None
        if proposal is None:
            try:
                proposal = await self._answer(card.id, seed)
            except AgentError as error:
                return msgspec.structs.replace(note, broken=f"the ideator: {error}")
        note = msgspec.structs.replace(note, proposal=proposal)
        if self.rollouts is None or proposal.idea is None:
            return note
        job = RolloutJob(state=card.id, proposal=proposal)  # as in training: executed once for all
        result = await attempted(self.rollouts, job)
        broken = "" if result.reward is not None else f"the rollout: {result.detail}"
        return msgspec.structs.replace(note, reward=result.reward, broken=broken)

    async def _answer(self, state: str, seed: int) -> Proposal:
        """Raises `AgentError` if there is none."""
        shown = self.help_state(state)
        situation = msgspec.structs.replace(shown.situation, seed=seed)
        shown = msgspec.structs.replace(shown, situation=situation)
        try:
            async with asyncio.timeout(self.idea_s):
                return await proposal_of(self.ideator, shown)
        except MleIdeatorError:
            raise
        except Exception as error:  # ideators are other people's code
            what = "no answer in time" if isinstance(error, TimeoutError) else repr(error)
            raise AgentError(what) from error


async def gathered(
    asking: Asking,
    cards: Sequence[StateCard],
    ideas: int,
    parallel: int,
    file: Path,
    source: Source,
    heard: Callable[[Note, int, int], None],
) -> list[Note]:
    """So many answers to each help state, in the order of the states.

    `heard` gets each new one, how many there are, and how many there will be. Raises `UsageError`
    if the file is of another source or in use.
    """
    places = [(card, number) for card in cards for number in range(ideas)]
    with _opened(file, source) as (descriptor, notes):
        missing = [
            (card, number)
            for card, number in places
            if not asking.settled(notes.get(Place(card.id, number)))
        ]
        done = len(places) - len(missing)
        todo = iter(missing)

        async def work() -> None:
            nonlocal done
            for card, number in todo:
                place = Place(card.id, number)
                note = await asking.noted(card, number, notes.get(place))
                _write(descriptor, note)
                notes[place] = note
                done += 1
                heard(note, done, len(places))

        await _together([work() for _ in range(min(parallel, len(missing)))])
    return [notes[Place(card.id, number)] for card, number in places]


async def _together(works: Sequence[Coroutine[None, None, None]]) -> None:
    """All of them; the first error ends the others, and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


@contextmanager
def _opened(path: Path, source: Source) -> Iterator[tuple[int, dict[Place, Note]]]:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if not lock(descriptor):
            raise UsageError(f"another process writes to {path}: wait for it to end.")
        yield descriptor, _gone_on(descriptor, path, source)
    finally:
        os.close(descriptor)


def _gone_on(descriptor: int, path: Path, source: Source) -> dict[Place, Note]:
    """What the file holds; a last line that a kill cut is cut off. Later lines win."""
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if not whole and content and not msgspec.json.encode(source).startswith(content):
        raise UsageError(f"{path} holds no ideas of a warm-up; name another folder.")
    os.ftruncate(descriptor, whole)
    if not whole:
        _write(descriptor, source)
        return {}
    lines = content[:whole].split(b"\n")[:-1]
    found = _decoded(path, 1, lines[0], Source)
    if found != source:
        raise UsageError(
            f"{path} holds ideas of another call ({_said(found)}; now {_said(source)}): name "
            "another folder, or remove the file."
        )
    notes = [_decoded(path, number, line, Note) for number, line in enumerate(lines[1:], start=2)]
    return {Place(note.state, note.number): note for note in notes}


def _decoded(path: Path, number: int, line: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(line, type=kind)
    except msgspec.MsgspecError as error:
        raise UsageError(f"{path}, line {number} is no line of a warm-up: {error}.") from error


def _said(source: Source) -> str:
    options: Mapping[str, Any] = source.options
    told = f" with {options}" if options else ""
    return f"ideas of {source.ideator}{told}, seed {source.seed}"


def _write(descriptor: int, line: Value) -> None:
    rest = memoryview(msgspec.json.encode(line) + b"\n")
    while rest:
        rest = rest[os.write(descriptor, rest) :]
