"""What the evolving buffer costs, and how that grows with the number of help states.

    OMP_NUM_THREADS=1 python tests/performance/bench_buffer.py [STATES ...]

Each size (10^3, 10^4, 10^5, 10^6) is a process of its own, with 100 tasks and a log on disk. A step
is one draw of 64 states and 64 groups of 8 rewards observed, each written to the log first; medians
over 300 steps, of which the first 100 go down the schedule, also of the processor's time (others
may keep it busy). Open: the last save with an empty log, in a new process; memory: the peak of that
process over what Python and the imports take, while it opens and makes 20 more steps, and in
brackets all of it. Targets at 10^6: a step <= 5 ms, open <= 2 s, <= 400 MB.
"""

from __future__ import annotations

import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

from mle_ideator.rl.buffer.config import CurriculumConfig
from mle_ideator.rl.buffer.disk import KeptBuffer
from mle_ideator.rl.values import StateCard

SIZES = (1_000, 10_000, 100_000, 1_000_000)
TASKS, BATCH, GROUP = 100, 64, 8
COLUMNS = (
    *("draw_ms", "observe_ms", "step_ms", "step_cpu_ms"),
    *("add_us", "metrics_ms", "save_s", "open_s", "memory_mb"),
)


def card(number: int) -> StateCard:
    return StateCard(
        id=hashlib.sha256(str(number).encode()).hexdigest(),
        task=f"task-{number % TASKS}",
        kind="improve",
        steps=5,
        score=None,
        collected_at="2026-01-01T00:00:00Z",
    )


def steps(buffer: KeptBuffer, count: int) -> dict[str, float]:
    """Milliseconds of a draw, of 64 observations, of both, and of both on the processor."""
    random = np.random.default_rng(1)
    draws, observations, spent = [], [], []
    for _ in range(count):
        start, busy = time.perf_counter(), time.process_time()
        drawn = buffer.draw(BATCH)
        draws.append(time.perf_counter() - start)
        busy -= time.process_time()
        chance = random.random((len(drawn), 1))
        rewards = (random.random((len(drawn), GROUP)) < chance).astype(float).tolist()
        start, busy = time.perf_counter(), busy + time.process_time()
        for each, earned in zip(drawn, rewards, strict=True):
            buffer.observe(each.id, earned)
        observations.append(time.perf_counter() - start)
        spent.append(time.process_time() - busy)
    both = [a + b for a, b in zip(draws, observations, strict=True)]
    figures = {"draw_ms": draws, "observe_ms": observations, "step_ms": both, "step_cpu_ms": spent}
    return {name: median(values) * 1e3 for name, values in figures.items()}


def build(folder: Path, size: int) -> dict[str, float]:
    with KeptBuffer(folder, CurriculumConfig(), seed=0) as buffer:
        cards = [card(number) for number in range(size)]
        start = time.perf_counter()
        for each in cards:
            buffer.add(each)
        added = (time.perf_counter() - start) / size
        found = steps(buffer, 300)
        start = time.perf_counter()
        buffer.metrics()
        looked = time.perf_counter() - start
        start = time.perf_counter()
        buffer.save()
        saved = time.perf_counter() - start
    return found | {"add_us": added * 1e6, "metrics_ms": looked * 1e3, "save_s": saved}


def reopen(folder: Path) -> dict[str, float]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    with KeptBuffer(folder) as buffer:
        opened = time.perf_counter() - start
        steps(buffer, 20)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"open_s": opened, "memory_mb": (after - before) / 1024, "process_mb": after / 1024}


def measure(size: int) -> dict[str, float]:
    """Both halves, each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        found: dict[str, float] = {}
        for half in ("build", "reopen"):
            call = [sys.executable, __file__, half, folder, str(size)]
            found |= json.loads(subprocess.run(call, check=True, capture_output=True).stdout)
        return found


def main(sizes: list[int]) -> None:
    print(f"{'states':>10}" + "".join(f"{column:>12}" for column in COLUMNS), flush=True)
    for size in sizes:
        found = measure(size)
        cells = "".join(f"{found[column]:12.2f}" for column in COLUMNS)
        print(f"{size:10,}{cells}  ({found['process_mb']:.0f})", flush=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["build", folder, size]:
            print(json.dumps(build(Path(folder), int(size))))
        case ["reopen", folder, _]:
            print(json.dumps(reopen(Path(folder))))
        case sizes:
            main([int(size) for size in sizes] or list(SIZES))
