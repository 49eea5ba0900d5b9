"""What the runtime adds to a step: all but the model, the cell and the grader.

    python -m tests.performance.bench_session_overhead [STEPS]

A real session by the CodeAct implementer, each step with 2 kB of output. Target: at most 10 ms in
the median around step 200. The time of the processor tells what a busy machine adds to it.
"""

from __future__ import annotations

import asyncio
import sys
from statistics import median
from time import process_time

from tests.performance.long_session import play_somewhere

WINDOW = 20


async def main(steps: int) -> None:
    walls = (await play_somewhere(steps + WINDOW, 60_000)).overheads_s
    processor = (await play_somewhere(steps + WINDOW, 60_000, process_time)).overheads_s
    print(f"median milliseconds of {WINDOW} steps around a step")
    for step in (steps // 8, steps // 4, steps // 2, steps * 3 // 4, steps):
        around = slice(step - WINDOW // 2, step + WINDOW // 2)
        wall, busy = 1000 * median(walls[around]), 1000 * median(processor[around])
        print(f"step {step:>4}  {wall:6.2f}   of the processor {busy:6.2f}")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
