"""Rollouts from one snapshot, side by side, against copies of the workspace run one by one."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path

import psutil

from mle_ideator.protocols import SandboxFactory, SandboxRequest
from mle_ideator.types import Execute
from tests.performance.scored_step import SOLUTION, Run, finished

FILES, FILE_MB = 200, 1
TIMEOUT_S = 300
_STEP = f"test $(ls features | wc -l) = {FILES} && python solution.py"
_SAMPLED_EVERY_S = 0.02


def write_workspace(workspace: Path) -> None:
    """A workspace of 200 MB in 200 files, with a solution."""
    (workspace / "features").mkdir(parents=True)
    for number in range(FILES):
        content = os.urandom(FILE_MB * 2**20)
        (workspace / "features" / f"part{number:03}.bin").write_bytes(content)
    (workspace / "solution.py").write_text(SOLUTION)


async def take_snapshot(factory: SandboxFactory, workspace: Path, inputs: Path, to: Path) -> float:
    """Seconds that it took."""
    request = SandboxRequest(workspace=str(workspace), inputs=str(inputs))
    async with factory(request) as sandbox:
        start = time.perf_counter()
        await sandbox.snapshot(to)
        return time.perf_counter() - start


async def rollout(factory: SandboxFactory, snapshot: Path, inputs: Path, threads: int) -> Run:
    """A sandbox from the snapshot, one scored step, its end."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        workspace = Path(folder, "workspace")
        workspace.mkdir()
        request = SandboxRequest(
            workspace=str(workspace), inputs=str(inputs), snapshot=str(snapshot), threads=threads
        )
        start = time.perf_counter()
        async with factory(request) as sandbox:
            step = await sandbox.execute(Execute("bash", _STEP), TIMEOUT_S)
            run = finished(workspace, 0, step.text)
        return Run(time.perf_counter() - start, run.imports, run.work)


async def side_by_side(
    factory: SandboxFactory, snapshot: Path, inputs: Path, count: int, at_once: int
) -> float:
    """Seconds that `count` rollouts take, `at_once` at a time, each with its share of the cores."""
    turns = asyncio.Semaphore(at_once)
    threads = max(1, (os.cpu_count() or 1) // at_once)

    async def one() -> None:
        async with turns:
            await rollout(factory, snapshot, inputs, threads)

    start = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(count)))
    return time.perf_counter() - start


def one_by_one(workspace: Path, inputs: Path, count: int) -> float:
    """Seconds that `count` fresh processes take, each in a full copy of the workspace."""
    seconds = 0.0
    for _ in range(count):
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            copy = Path(folder, "workspace")
            shutil.copytree(workspace, copy, ignore=shutil.ignore_patterns("input"))
            (copy / "input").symlink_to(inputs)
            done = subprocess.run(
                [sys.executable, "solution.py"], cwd=copy, capture_output=True, text=True
            )
            finished(copy, 0, done.stdout + done.stderr)
            seconds += time.perf_counter() - start
    return seconds


async def own_memory(run: Coroutine[None, None, object]) -> float:
    """MB that it adds at its peak to what this process and all below hold of their own.

    Containers are not below this process.
    """
    before = peak = anonymous_mb()
    running = asyncio.create_task(run)
    while not running.done():
        await asyncio.wait({running}, timeout=_SAMPLED_EVERY_S)
        peak = max(peak, await asyncio.to_thread(anonymous_mb))
    await running
    return peak - before


def anonymous_mb() -> float:
    """Memory of this process and all below it that no file backs, each shared page counted once."""
    own = psutil.Process()
    total = 0
    for process in (own, *own.children(recursive=True)):
        with suppress(OSError, psutil.Error):
            for line in Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss_Anon:"):
                    total += int(line.split()[1])
    return total / 1024
