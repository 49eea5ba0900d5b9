"""Sessions opened and closed by the hundred: what is left of them, and does memory grow?

    python -m tests.performance.leak_run [--sessions N] [--sandbox NAME ...]

Each session runs cells, leaves a process behind, and every third loses its kernel. A table tells
what there was before and after; the exit code is 1 if anything was left, or if memory grew by more
than 20 MB over the later two thirds of 100 or more sessions.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import median

import psutil

from mle_ideator.protocols import Sandbox, SandboxFactory, SandboxRequest
from mle_ideator.registry import find, registered
from mle_ideator.sandboxes.owners import this_process
from mle_ideator.types import Execute
from tests.processes import children

SESSIONS = 500
WARM_UP = 3
"""Sessions before the count: what a process keeps for all of its sessions is made by then."""
SETTLE_S = 10.0
"""What ends just after its sandbox may take this long."""
MOST_GROWTH_MB = 20.0
_CELL_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Held:
    """What belongs to the sandboxes of this process and can be left behind, counted."""

    processes: int
    """Below this one, or with a path of this run in their environment or command."""
    descriptors: int
    sockets: int
    threads: int
    """Without the event loop's pool, which grows as it is used, to a bound."""
    mounts: int
    containers: int
    control_groups: int
    files: int
    """In the folder for temporary files, which is this run's own."""

    def grown_since(self, before: Held) -> dict[str, int]:
        """What there is more of, and how much."""
        more = {f.name: getattr(self, f.name) - getattr(before, f.name) for f in fields(self)}
        return {name: count for name, count in more.items() if count > 0}


def held(folder: Path) -> Held:
    """Count, given the run's own folder for temporary files."""
    links = [_link(entry) for entry in Path("/proc/self/fd").iterdir()]
    return Held(
        processes=len(_processes(folder)),
        descriptors=len(links),
        sockets=sum(link.startswith("socket:") for link in links),
        threads=len(list(Path("/proc/self/task").iterdir())) - _pooled(),
        mounts=Path("/proc/self/mountinfo").read_text().count(f" {folder}/"),
        containers=_containers(folder),
        control_groups=_control_groups(),
        files=len(list(folder.iterdir())),
    )


def _pooled() -> int:
    pools = ("asyncio_", "sandboxes-")
    return sum(thread.name.startswith(pools) for thread in threading.enumerate())


def _link(entry: Path) -> str:
    with suppress(OSError):
        return str(entry.readlink())
    return ""


def _processes(folder: Path) -> set[int]:
    found = children()
    wanted = os.fsencode(f"{folder}/")
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                told = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
                if wanted in told:
                    found.add(int(entry.name))
    return found


def _containers(folder: Path) -> int:
    """Also stopped ones, that have a folder of this run mounted."""
    import docker
    from docker.errors import DockerException

    try:
        client = docker.from_env()
    except DockerException:
        return 0
    try:
        everything = client.api.containers(all=True)
    finally:
        client.close()
    return sum(
        any(mount.get("Source", "").startswith(f"{folder}/") for mount in container["Mounts"])
        for container in everything
    )


def _control_groups() -> int:
    """That name this process, at any depth of any hierarchy."""
    named = this_process().replace(" ", "_")
    return sum(named in name for _, names, _ in os.walk("/sys/fs/cgroup") for name in names)


async def session(factory: SandboxFactory, number: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        inputs = Path(folder, "inputs")
        inputs.mkdir()
        (inputs / "train.csv").write_text("id,x\n1,2\n")
        request = SandboxRequest(workspace=f"{folder}/workspace", inputs=str(inputs))
        async with factory(request) as sandbox:
            await _expect(sandbox, "python", "print(open('input/train.csv').read())", "ok")
            await _expect(sandbox, "bash", "setsid sleep 600 & echo started", "ok")
            if number % 3 == 0:
                await _expect(sandbox, "python", "import os; os.kill(os.getpid(), 9)", "died")
                await _expect(sandbox, "python", "print('again')", "ok")


async def _expect(sandbox: Sandbox, language: str, code: str, status: str) -> None:
    action = Execute("python" if language == "python" else "bash", code)
    execution = await sandbox.execute(action, _CELL_TIMEOUT_S)
    if execution.status != status:
        raise SystemExit(f"{code!r} ended with {execution.status}: {execution.note}")


async def leaks(factory: SandboxFactory, sessions: int, folder: Path) -> tuple[Held, Held, float]:
    """What was held before and after, and by how many MB memory grew from the second third of the
    sessions to the last (medians)."""
    for number in range(WARM_UP):
        await session(factory, number)
    before = await settled(folder, None)
    memory = []
    for number in range(sessions):
        await session(factory, number)
        memory.append(psutil.Process().memory_info().rss / 2**20)
    after = await settled(folder, before)
    third = max(1, sessions // 3)
    return before, after, median(memory[-third:]) - median(memory[third : 2 * third] or memory)


async def settled(folder: Path, before: Held | None) -> Held:
    """The count once nothing is left, or no longer changes."""
    deadline = time.monotonic() + SETTLE_S
    last = None
    while (now := held(folder)) != last and time.monotonic() < deadline:
        if before is not None and not now.grown_since(before):
            break
        last = now
        await asyncio.sleep(1)
    return now


def leaked(before: Held, after: Held, growth_mb: float, sessions: int) -> list[str]:
    """What was left, in words."""
    found = [f"{count} {name}" for name, count in after.grown_since(before).items()]
    if sessions >= 100 and growth_mb > MOST_GROWTH_MB:
        found.append(f"{growth_mb:.0f} MB of memory")
    return found


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--sessions", type=int, default=SESSIONS, help="of each sandbox")
    options.add_argument("--sandbox", nargs="+", default=sorted(registered("sandboxes")))
    wanted = options.parse_args()
    failed: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="leak-run-") as folder:
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        for name in wanted.sandbox:
            factory: SandboxFactory = find("sandboxes", name)[0]
            if reason := factory.unavailable():
                print(f"{name} is left out: {reason}")
                continue
            start = time.monotonic()
            run = leaks(factory, wanted.sessions, Path(folder))
            before, after, growth = asyncio.run(run)
            seconds = (time.monotonic() - start) / (wanted.sessions + WARM_UP)
            print(f"\n## {name}: {wanted.sessions} sessions, {seconds:.2f} s each\n")
            print("| | before | after |\n|---|---|---|")
            for field in fields(Held):
                numbers = getattr(before, field.name), getattr(after, field.name)
                print(f"| {field.name.replace('_', ' ')} | {numbers[0]} | {numbers[1]} |")
            print(f"\nmemory, last third over the second: {growth:+.1f} MB", flush=True)
            found = leaked(before, after, growth, wanted.sessions)
            failed[name] = len(found)
            print(f"leaked: {', '.join(found) or 'nothing'}", flush=True)
        tempfile.tempdir = None
    return int(failed.total() > 0)


if __name__ == "__main__":
    sys.exit(main())
