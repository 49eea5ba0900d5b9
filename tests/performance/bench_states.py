"""What a store of help states takes as it grows.

    python tests/performance/bench_states.py [STATES] [RUN]

One session of the offline pair is run for real (or taken from the folder RUN, which was made with
`keep_help_states`). Its first two help requests are then varied by a seed into STATES (10,000) help
states of 20 tasks: of eleven, one is a session's and ten were reached from it by rollouts, each
with other code and another submission. At 1, 3, 10, 30 … thousand the store is measured. Times are
means; adding is that of the last folders before. Sizes are what the disk gives.

    python tests/performance/bench_states.py index [CARDS]

The index alone with CARDS (100,000) made-up cards, which takes a minute.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np

from mle_ideator.benchmarks.running import run_to_end, set_up
from mle_ideator.config import RunConfig
from mle_ideator.journal import Decided, Event, Resumed
from mle_ideator.limits import Limits
from mle_ideator.rl.states import StateStore, harvest
from mle_ideator.rl.states.folders import write_folder
from mle_ideator.rl.states.index import Index
from mle_ideator.rl.states.recorded import Listing, Recorded, as_lines, events_in
from mle_ideator.rl.values import StateCard
from mle_ideator.types import Score

TASKS, CHILDREN, SAMPLE = 20, 10, 200
RESUMED = "2026-01-01T00:00:00+00:00"


def session(folder: Path) -> Path:
    """A real one."""
    limits = Limits(steps=8)
    config = RunConfig(task="concrete", sandbox="local", limits=limits, keep_help_states=True)
    folder.mkdir()
    asyncio.run(run_to_end(set_up(config, folder)))
    return folder


class Variations:
    """Help states like two recorded ones, the second reached from the first."""

    def __init__(self, first: Recorded, second: Recorded) -> None:
        self.first, self.second = first, second
        asked = first.asked
        decided = [event for event in first.events if isinstance(event, Decided)][-1]
        resumed = Resumed(at_s=asked.at_s, resumed_at=RESUMED, sandbox=first.started.sandbox)
        self.again: tuple[Event, ...] = (resumed, decided, asked)
        self.later = second.events[len(first.events) :]
        self.files = {
            entry.path: b"".join(second.read(digest))
            for entry, digest in self._pairs(second)
            if digest
        }

    def root(self, number: int) -> Recorded:
        return self._state(_varied(self.first.events, number), self.first, number)

    def child(self, root: Recorded, number: int) -> Recorded:
        events = (*root.events, *self.again[:2], root.asked, *_varied(self.later, number))
        return self._state(events, self.second, number)

    def _state(self, events: Sequence[Event], like: Recorded, number: int) -> Recorded:
        contents: dict[str, bytes] = {}
        entries, digests = [], []
        for entry, digest in self._pairs(like):
            if digest:
                content = self._content(entry.path, number)
                digest = hashlib.sha256(content).hexdigest()
                contents[digest] = content
                entry = msgspec.structs.replace(entry, size=len(content))
            entries.append(entry)
            digests.append(digest)
        assert like.listing
        manifest = msgspec.structs.replace(like.listing.manifest, entries=entries)
        listing = Listing(manifest=manifest, digests=tuple(digests))
        return Recorded(
            events=tuple(events), listing=listing, read=lambda digest: (contents[digest],)
        )

    def _content(self, path: str, number: int) -> bytes:
        """Code with another first line; a table with other numbers; else the same."""
        content = self.files[path]
        if path.endswith(".py"):
            return f"# variant {number}\n".encode() + content
        if path.endswith(".csv"):
            head, *lines = content.splitlines()
            drawn = np.random.default_rng(number).random((len(lines), head.count(b",")))
            rows = (b",".join(b"%.9g" % value for value in row) for row in drawn)
            names = (line.partition(b",")[0] for line in lines)
            return b"\n".join([head, *map(b",".join, zip(names, rows, strict=True)), b""])
        return content

    @staticmethod
    def _pairs(state: Recorded) -> list[tuple[msgspec.Struct, str | None]]:
        assert state.listing
        return list(zip(state.listing.manifest.entries, state.listing.digests, strict=True))


def _varied(events: Sequence[Event], number: int) -> tuple[Event, ...]:
    mark = f'"code":"# variant {number}\\n'.encode()
    return tuple(events_in(as_lines(events).replace(b'"code":"', mark), "a variation"))


def mean(call: Callable[[str], object], chosen: Sequence[str]) -> float:
    """Milliseconds of one call."""
    start = time.perf_counter()
    for each in chosen:
        call(each)
    return 1000 * (time.perf_counter() - start) / len(chosen)


def megabytes(path: Path) -> float:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_blocks * 512 for file in files) / 1e6


def measure(store: StateStore, home: Path, added: Sequence[float], last: Path) -> None:
    """One line a figure."""
    ids = [card.id for card in store.cards()]
    chosen = random.Random(0).sample(ids, min(SAMPLE, len(ids)))
    out = home / f"out-{len(ids)}"
    told("add", 1000 * sum(added) / len(added))
    told("add again", mean(lambda _: store.add(last), chosen[:50]))
    told("help_state", mean(store.help_state, chosen))
    told("write_to", mean(lambda one: store.write_to(one, out / one), chosen[:100]))
    measure_finding(store, chosen)
    database = sum(megabytes(file) for file in home.glob("states.db*"))
    contents = megabytes(home / "states.files")
    print(f"    index {database:.1f} MB, contents {contents:.1f} MB on disk")
    print(f"    a state: {1000 * (database + contents) / len(ids):.1f} kB", flush=True)


def measure_finding(store: StateStore, chosen: Sequence[str]) -> None:
    told("find by 16 of an id", mean(lambda one: store.find(one[:16]), chosen))
    told("card", mean(store.card, chosen))
    told(
        "1,000 cards after one",
        mean(lambda one: store.cards(limit=1000, after=one), chosen[:20]),
    )
    told("all cards", mean(lambda _: store.cards(), chosen[:2]))
    told("tasks", mean(lambda _: store.tasks(), chosen[:5]))
    told("open and count", mean(lambda _: opened(store.path), chosen[:20]))


def told(name: str, milliseconds: float) -> None:
    print(f"    {name:24} {milliseconds:10.3f} ms", flush=True)


def fill_index(path: Path, cards: int) -> None:
    """Cards without any contents."""
    index, ids = Index(path), []
    journal = [f"{number:064x}" for number in range(4)]
    start = time.perf_counter()
    for number in range(cards):
        identity = hashlib.sha256(str(number).encode()).hexdigest()
        card = StateCard(
            id=identity,
            task=f"task-{number % TASKS}",
            kind="improve",
            depth=number % 7,
            parent=ids[-1] if ids else None,
            steps=number % 20,
            score=Score(number / cards, True),
            collected_at=RESUMED,
        )
        index.add(card, journal, b"0" * 300)
        ids.append(identity)
    told("add", 1000 * (time.perf_counter() - start) / cards)
    index.close()
    with StateStore(path) as store:
        measure_finding(store, random.Random(0).sample(ids, SAMPLE))
    print(f"    index {megabytes(path):.1f} MB")


def opened(path: Path) -> int:
    with StateStore(path) as store:
        return store.count()


def grow(home: Path, variations: Variations, states: int) -> None:
    """Those that are measured come from folders, the others are put there without."""
    added: list[float] = []
    powers = (n * 10**power for power in range(3, 7) for n in (1, 3))
    points = sorted({point for point in powers if point < states} | {states})
    root, parent = variations.root(0), None
    with StateStore(home / "states.db") as store:
        for number in range(states):
            is_root = number % (CHILDREN + 1) == 0
            state = variations.root(number) if is_root else variations.child(root, number)
            task = f"task-{number // (CHILDREN + 1) % TASKS}"
            reached_from = None if is_root else parent
            if number < points[0] - SAMPLE:
                card, new = store.put(state, parent=reached_from, task=task)
            else:
                folder = home / "state" / str(number)
                write_folder(state, folder)
                start = time.perf_counter()
                card, new = store.add(folder, parent=reached_from, task=task)
                added.append(time.perf_counter() - start)
            if not new:
                raise SystemExit(f"variation {number} is no new state")
            if is_root:
                root, parent = state, card.id
            if number + 1 == points[0]:
                print(f"{points.pop(0)} states, journals of {len(state.journal) / 1000:.0f} kB")
                measure(store, home, added, folder)
                added.clear()


def main(states: int, run: Path | None) -> None:
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        taken = run or session(home / "session")
        with StateStore(home / "recorded.db") as recorded:
            first, second, *_ = (recorded.recorded(c.id) for c in harvest(taken, recorded).new)
            grow(home, Variations(first, second), states)


def main_index(cards: int) -> None:
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {cards} cards", flush=True)
    with tempfile.TemporaryDirectory() as name:
        fill_index(Path(name, "states.db"), cards)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:1] == ["index"]:
        main_index(int(arguments[1]) if len(arguments) > 1 else 100_000)
    else:
        count = int(arguments[0]) if arguments else 10_000
        main(count, Path(arguments[1]) if len(arguments) > 1 else None)
