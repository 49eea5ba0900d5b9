"""From finished and broken-off sessions to help states, and from these to a buffer."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from mle_ideator.benchmarks.runner.folders import RUNS
from mle_ideator.journal import FILE
from mle_ideator.rl.buffer.disk import KeptBuffer
from mle_ideator.rl.files import files_of
from mle_ideator.rl.states import StateStore, harvest
from mle_ideator.types import Value


class Collected(Value, frozen=True, kw_only=True):
    """What all sessions beside a store have brought."""

    new: int
    states: int
    """In the store now."""
    kinds: dict[str, int]
    """Of these, by kind."""
    problems: tuple[str, ...]


def collected(path: Path) -> Collected:
    """Keep the help requests of all sessions beside a store, in the store and in its buffer."""
    new, problems = 0, list[str]()
    files = files_of(path)
    with StateStore(path) as store, KeptBuffer(files.buffer) as buffer:
        for journal in sorted((files.runs / RUNS).glob(f"**/{FILE}")):
            found = harvest(journal.parent, store)
            new += len(found.new)
            problems += [f"{journal.parent}: {problem}" for problem in found.problems]
        cards = store.cards()
        for card in cards:
            if card.id not in buffer:
                buffer.add(card)
        kinds = Counter(card.kind for card in cards)
    return Collected(
        new=new,
        states=len(cards),
        kinds={str(kind): count for kind, count in kinds.items()},
        problems=tuple(problems),
    )
