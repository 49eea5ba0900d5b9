"""A runner as a process that can be killed.

`python -m tests.benchmarks.runner_driver R WORKERS ASKED`; with `ray` for WORKERS, on a Ray of its
own. What breaks is printed, a line each time.
"""

import asyncio
import sys
from pathlib import Path

import msgspec

from mle_ideator.benchmarks.runner.bench import run_bench
from mle_ideator.benchmarks.runner.local import LocalEngine
from mle_ideator.benchmarks.runner.matrix import Patience
from mle_ideator.benchmarks.runner.plan import Asked
from mle_ideator.benchmarks.runner.progress import Retried
from mle_ideator.benchmarks.runner.ray_engine import RayEngine

if __name__ == "__main__":
    results, workers = Path(sys.argv[1]), sys.argv[2]
    asked = msgspec.json.decode(sys.argv[3], type=Asked)

    def engine(plan):
        if workers == "ray":
            return RayEngine(None, 2, plan.config_of(plan.cells()[0]))
        return LocalEngine(int(workers), results / "logs")

    def listen(event):
        if isinstance(event, Retried):
            print(event.error, flush=True)

    patience = Patience(attempts=3, first_wait_s=0.05, factor=1)
    asyncio.run(run_bench(results, asked, engine, listen, patience))
