"""What a cell costs over a bare `jupyter_client` round trip, and how fast kernels are ready.

    python tests/performance/bench_cell_overhead.py [CELLS]

Target: an overhead of at most 5 ms in the median; a kernel ready in at most one second.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from jupyter_client.manager import AsyncKernelManager

from mle_ideator.protocols import SandboxFactory, SandboxRequest
from mle_ideator.registry import find, registered
from mle_ideator.types import Execute

CELLS = ("pass", "1+1")


async def bare(count: int) -> dict[str, float]:
    """Median seconds of a cell through `jupyter_client` and a kernel as it comes."""
    manager = AsyncKernelManager(kernel_name="python3")
    await manager.start_kernel()
    client = manager.client()
    client.start_channels()
    try:
        await client.wait_for_ready(timeout=60)
        times: dict[str, list[float]] = {cell: [] for cell in CELLS}
        for _ in range(count):
            for cell in CELLS:
                start = time.perf_counter()
                await client.execute_interactive(
                    cell, store_history=False, output_hook=lambda _: None
                )
                times[cell].append(time.perf_counter() - start)
        return {cell: median(seconds) for cell, seconds in times.items()}
    finally:
        client.stop_channels()
        await manager.shutdown_kernel(now=True)


async def measure(
    factory: SandboxFactory, request: SandboxRequest, count: int
) -> tuple[float, dict[str, float]]:
    """Seconds until the kernel is ready, and the median seconds of each cell."""
    start = time.perf_counter()
    async with factory(request) as sandbox:
        ready = time.perf_counter() - start
        times: dict[str, list[float]] = {cell: [] for cell in CELLS}
        for _ in range(count):
            for cell in CELLS:
                start = time.perf_counter()
                await sandbox.execute(Execute("python", cell), 30)
                times[cell].append(time.perf_counter() - start)
    return ready, {cell: median(seconds) for cell, seconds in times.items()}


async def main(count: int) -> None:
    reference = await bare(count)
    print(f"{'jupyter_client':15}" + _cells(reference))
    for name in registered("sandboxes"):
        factory = find("sandboxes", name)[0]
        if reason := factory.unavailable():
            print(f"{name:15}not usable: {reason}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            workspace, inputs = Path(folder, "workspace"), Path(folder, "inputs")
            inputs.mkdir()
            (inputs / "train.csv").write_text("a,b\n1,2\n")
            request = SandboxRequest(workspace=str(workspace), inputs=str(inputs))
            readies = [(await measure(factory, request, 1))[0] for _ in range(4)]
            ready, times = await measure(factory, request, count)
        over = {cell: times[cell] - reference[cell] for cell in CELLS}
        print(f"{name:15}" + _cells(times) + "   overhead:" + _cells(over), end="")
        print(f"   ready: {median([ready, *readies]):.2f} s")


def _cells(times: dict[str, float]) -> str:
    return "".join(f"  {cell} {seconds * 1000:6.2f} ms" for cell, seconds in times.items())


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
