"""What an executor costs, and how well it keeps its slots busy.

    python -m tests.performance.bench_executor [--jobs N] [--slots N] [--median SECONDS] [--ray]

The jobs sleep, so a small machine will do; their lengths are lognormal (sigma 1), cut at five times
the median. A slot counts as busy while a job's function runs, from the first submission until no
job waits any more.

Targets: slots at least 95 % busy; at most 5 ms a job for 1,000 jobs that do nothing; Ray on one
machine at most 10 % slower than the local pool.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import time
from collections.abc import Sequence

import msgspec

from mle_ideator.rl.executor import Executor, Work
from mle_ideator.rl.executor.cluster import RayExecutor
from mle_ideator.rl.executor.local import LocalExecutor

_WORK = "tests.rl.executor_work"
_CUT = 5


def lengths(jobs: int, median: float, seed: int = 0) -> list[float]:
    chance = random.Random(seed)
    return [min(_CUT, chance.lognormvariate(0, 1)) * median for _ in range(jobs)]


async def warmed(executor: Executor, slots: int) -> None:
    """All workers are there: so many naps were taken at once."""
    nap = Work(function=f"{_WORK}:timed_sleep", argument=b"0.5", limit_s=600)
    awake = 0
    while awake < slots:
        answers = await asyncio.gather(*(executor.submit(nap) for _ in range(slots)))
        spans = [msgspec.json.decode(done.value) for done in answers]
        awake = max(sum(a <= begin < b for a, b in spans) for begin, _ in spans)


async def busy(executor: Executor, seconds: Sequence[float], slots: int) -> tuple[float, float]:
    """Share of the slots' time in use while jobs waited, and the time until all were done."""
    begin = time.monotonic()
    asked = [
        Work(function=f"{_WORK}:timed_sleep", argument=repr(length).encode(), limit_s=600)
        for length in seconds
    ]
    answers = await asyncio.gather(*(executor.submit(work) for work in asked))
    whole = time.monotonic() - begin
    spans = [msgspec.json.decode(done.value) for done in answers]
    emptied = max(start for start, _ in spans)  # then the last one that waited began
    used = sum(min(end, emptied) - start for start, end in spans)
    return used / (slots * (emptied - begin)), whole


async def overhead(executor: Executor, jobs: int) -> tuple[float, float]:
    """Seconds a job that does nothing: all at once, and one after the other."""
    work = Work(function=f"{_WORK}:echo", limit_s=60)
    begin = time.monotonic()
    await asyncio.gather(*(executor.submit(work) for _ in range(jobs)))
    at_once = time.monotonic() - begin
    begin = time.monotonic()
    for _ in range(jobs):
        await executor.submit(work)
    return at_once / jobs, (time.monotonic() - begin) / jobs


async def measured(name: str, executor: Executor, options: argparse.Namespace) -> float:
    begin = time.monotonic()
    async with executor:
        await warmed(executor, options.slots)
        print(f"{name}: {options.slots} workers ready in {time.monotonic() - begin:.1f} s")
        seconds = lengths(options.jobs, options.median)
        share, whole = await busy(executor, seconds, options.slots)
        ideal = sum(seconds) / options.slots
        print(f"{name}: {options.jobs} jobs in {whole:.2f} s ({ideal:.2f} s if all slots were")
        print(f"{name}:   always busy); slots busy while jobs waited: {share:.1%}")
        at_once, in_turn = await overhead(executor, options.empty)
        print(f"{name}: a job that does nothing takes {at_once * 1e3:.2f} ms ({options.empty} at")
        print(f"{name}:   once), {in_turn * 1e3:.2f} ms (one after the other)")
    return whole


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=256)
    parser.add_argument("--slots", type=int, default=16)
    parser.add_argument("--median", type=float, default=1.0, help="seconds")
    parser.add_argument("--empty", type=int, default=1000)
    parser.add_argument("--ray", action="store_true")
    options = parser.parse_args()
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    local = await measured("local", LocalExecutor(options.slots), options)
    if options.ray:
        ray = await measured("ray", RayExecutor(slots=options.slots), options)
        print(f"ray takes {ray / local - 1:+.1%} of the local pool's time for the same jobs")


if __name__ == "__main__":
    asyncio.run(main())
