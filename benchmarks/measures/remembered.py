"""Measures that were taken before, as long as nothing has changed that they come from.

They lie in one file for each results folder, in the user's cache, which may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
from functools import cache
from pathlib import Path

import msgspec

from mle_ideator import __version__, operations, results
from mle_ideator.benchmarks import fair_play, leaderboards
from mle_ideator.benchmarks.cache import cache_folder
from mle_ideator.benchmarks.leaderboards import Leaderboard
from mle_ideator.benchmarks.measures.values import Cell, RunMeasures
from mle_ideator.files import replace_file, signature
from mle_ideator.journal import FILE

Known = dict[str, RunMeasures]
"""By a key of all that the measures come from."""


def recall(root: Path) -> Known:
    """What is known of a results folder; nothing if that can not be read."""
    try:
        return msgspec.msgpack.decode(_file(root).read_bytes(), type=Known)
    except (OSError, msgspec.MsgspecError):
        return {}


def remember(root: Path, known: Known) -> None:
    """Where it can not be written everything is measured anew each time, and that is all."""
    file = _file(root)
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, msgspec.msgpack.encode(known))


def key_of(folder: Path, cell: Cell, board: Leaderboard | None) -> str:
    """Changes with the run's journal, with the leaderboard, and with the code that measures."""
    parts = (str(folder), signature(folder / FILE), cell, board, _code())
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def _file(root: Path) -> Path:
    name = hashlib.sha256(str(root).encode()).hexdigest()[:16]
    return cache_folder().with_name("measures") / f"{name}.msgpack"


@cache
def _code() -> str:
    """A hash of what measures are made with."""
    total = hashlib.sha256(__version__.encode())
    modules = [operations.__file__, results.__file__, leaderboards.__file__]
    rooms = [Path(__file__).parent, Path(fair_play.__file__).parent]
    for path in [
        *map(Path, modules),
        *(file for room in rooms for file in sorted(room.glob("*.py"))),
    ]:
        total.update(path.read_bytes())
    return total.hexdigest()
