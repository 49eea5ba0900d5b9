"""How long measuring many runs takes, and the figures over them.

    python tests/performance/bench_measures.py [RUNS] [RUN]

One session of the offline pair is run for real (or taken from the folder RUN); its journal is then
copied into RUNS folders (1,000) with other seeds and other words in its ideas. Cold: nothing is
known. Cached: nothing has changed. One new: one journal has changed. Target: seconds.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from mle_ideator.benchmarks.measures.contenders import figures_of
from mle_ideator.benchmarks.measures.one_run import measure_all
from mle_ideator.benchmarks.running import run_to_end, set_up
from mle_ideator.config import RunConfig
from mle_ideator.journal import FILE
from mle_ideator.limits import Limits

T = TypeVar("T")
CONTENDERS = ("offline", "null", "vague", "random")
SEEDS = 5


def timed(what: str, call: Callable[[], T]) -> T:
    """Tell seconds, and seconds of the processors, which do not count what others do."""
    start, before = time.perf_counter(), os.times()
    result = call()
    seconds, spent = time.perf_counter() - start, sum(os.times()[:4]) - sum(before[:4])
    print(f"{what:28} {seconds:8.2f} s   processors {spent:8.2f} s", flush=True)
    return result


def session(folder: Path) -> str:
    """The journal of one real session."""
    config = RunConfig(task="image-segments", sandbox="local", limits=Limits(steps=8))
    folder.mkdir()
    asyncio.run(run_to_end(set_up(config, folder)))
    return (folder / FILE).read_text()


def copies(journal: str, root: Path, runs: int) -> None:
    """The same session by several contenders, under several tasks' names and seeds."""
    for number in range(runs):
        contender, rest = number % len(CONTENDERS), number // len(CONTENDERS)
        text = journal.replace('"seed":0', f'"seed":{rest % SEEDS}', 1)
        text = text.replace('"ideator":"offline"', f'"ideator":"{CONTENDERS[contender]}"', 1)
        text = text.replace('"action":"', f'"action":"In variant {number}: ')
        folder = root / f"task-{rest // SEEDS}" / CONTENDERS[contender] / f"seed-{rest % SEEDS}"
        folder.mkdir(parents=True)
        (folder / FILE).write_text(text)


def main(runs: int, run: Path | None) -> None:
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        journal = (run / FILE).read_text() if run else session(home / "session")
        os.environ["MLE_IDEATOR_CACHE"] = str(home / "cache")
        copies(journal, home / "R", runs)
        print(f"{runs} runs, journals of {len(journal) / 1000:.0f} kB, {os.cpu_count()} cores")
        measured = timed("cold", lambda: measure_all(home / "R"))
        again = timed("cached", lambda: measure_all(home / "R"))
        if len(measured) != runs or again != measured:
            raise SystemExit("the cache changed the measures")
        changed = home / "R" / measured[0].folder / FILE
        changed.touch()
        timed("one new", lambda: measure_all(home / "R"))
        timed("figures and comparisons", lambda: figures_of(measured))


if __name__ == "__main__":
    count, *taken = [*sys.argv[1:], "1000"] if len(sys.argv) < 2 else sys.argv[1:]
    main(int(count), Path(taken[0]) if taken else None)
