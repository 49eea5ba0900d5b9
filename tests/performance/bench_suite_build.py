"""How long the bundled suite takes to build: from nothing, then from the cache.

    python tests/performance/bench_suite_build.py

In one process, one task after the other; tasks whose package is not installed are named and left
out. The claim is two minutes for all from nothing.
"""

from __future__ import annotations

import os
import tempfile
import time

from mle_ideator.benchmarks.bundled import BundledTasks, bundled_folders
from mle_ideator.benchmarks.cache import VARIABLE
from mle_ideator.errors import TaskError


def seconds_to_load(task_id: str) -> float:
    start = time.perf_counter()
    BundledTasks().load(task_id)
    return time.perf_counter() - start


def main() -> None:
    import pandas  # noqa: F401  (its import is no task's own)

    totals = [0.0, 0.0]
    print(f"{'task':22} {'from nothing':>14} {'from the cache':>15}")
    with tempfile.TemporaryDirectory() as cache:
        os.environ[VARIABLE] = cache
        for task_id in bundled_folders():
            try:
                times = [seconds_to_load(task_id), seconds_to_load(task_id)]
            except TaskError as error:
                print(f"{task_id:22} left out: {error}")
                continue
            totals = [total + seconds for total, seconds in zip(totals, times, strict=True)]
            print(f"{task_id:22} {times[0]:12.2f} s {times[1]:13.3f} s", flush=True)
    print(f"{'all':22} {totals[0]:12.2f} s {totals[1]:13.3f} s")


if __name__ == "__main__":
    main()
