"""A driver for the tests to kill: `python -m tests.rl.executor_driver local|ADDRESS FOLDER JOBS`.

Runs so many jobs of different length, each of which notes its begin, and writes its counters.
"""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path

import msgspec

from mle_ideator.rl.executor import Executor, ResultCache, Work
from mle_ideator.rl.executor.cluster import RayExecutor
from mle_ideator.rl.executor.local import LocalExecutor

SLOTS = 4


def work(folder: Path, number: int) -> Work:
    seconds = random.Random(number).lognormvariate(-3, 0.7)
    return Work(
        function="tests.rl.executor_work:noted",
        argument=msgspec.json.encode([str(folder / "begun"), f"job{number}", seconds]),
        key=str(number),
        limit_s=60,
    )


async def main(where: str, folder: Path, jobs: int) -> None:
    cache = ResultCache(folder / "cache")
    executor: Executor = (
        LocalExecutor(SLOTS, cache=cache, tries=20, deaths=10)
        if where == "local"
        else RayExecutor(where, cache=cache, tries=20, deaths=10)
    )
    async with executor:
        futures = [executor.submit(work(folder, number)) for number in range(jobs)]
        (folder / "ready").touch()
        for number, done in enumerate(await asyncio.gather(*futures)):
            assert done.value == f"job{number}".encode(), done
        (folder / "counters").write_bytes(msgspec.json.encode(executor.counters()))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))
