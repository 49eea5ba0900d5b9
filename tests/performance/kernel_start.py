"""How long until a kernel is ready, and how long it then takes to import the usual packages.

    python tests/performance/kernel_start.py SANDBOX [OPENINGS]

Prints JSON, in seconds: of this process's `first` sandbox, and of `later` ones. `renewed` is what a
cell takes longer whose kernel had died. `bench_sandboxes.py` starts this once for each sandbox,
since a process has one first sandbox.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

from mle_ideator.protocols import Sandbox, SandboxRequest
from mle_ideator.registry import find
from mle_ideator.types import Execute, Execution

IMPORTS = "import numpy, pandas, sklearn.model_selection, sklearn.metrics, lightgbm"
TIMEOUT_S = 120


async def timed(sandbox: Sandbox, code: str, status: str = "ok") -> float:
    start = time.perf_counter()
    execution: Execution = await sandbox.execute(Execute("python", code), TIMEOUT_S)
    seconds = time.perf_counter() - start
    if execution.status != status:
        raise SystemExit(f"{code!r} ended with {execution.status!r}: {execution.text}")
    return seconds


async def opening(sandbox_name: str, folder: Path) -> dict[str, float]:
    """One sandbox from its opening to its end."""
    (folder / "inputs").mkdir()
    request = SandboxRequest(workspace=str(folder / "workspace"), inputs=str(folder / "inputs"))
    start = time.perf_counter()
    async with find("sandboxes", sandbox_name)[0](request) as sandbox:
        ready = time.perf_counter() - start
        imports = await timed(sandbox, IMPORTS)
        ordinary = await timed(sandbox, "pass")
        await timed(sandbox, "import os; os._exit(1)", status="died")
        renewed = await timed(sandbox, "pass") - ordinary
        again = await timed(sandbox, IMPORTS)
        end = time.perf_counter()
    closed = time.perf_counter() - end
    return {
        "ready": ready,
        "imports": imports,
        "renewed": renewed,
        "imports again": again,
        "closed": closed,
    }


async def main(sandbox: str, openings: int) -> None:
    measured = []
    for _ in range(openings):
        with tempfile.TemporaryDirectory() as folder:
            measured.append(await opening(sandbox, Path(folder)))
    print(json.dumps({"first": measured[0], "later": measured[1:]}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 8))
