"""What keeping, putting back and opening a workspace costs, beside a full copy.

    python tests/performance/bench_snapshots.py [FOLDER]

2,000 files, 500 MB, of which 5 change; medians of 5 rounds, in FOLDER (this one), whose file system
decides how a snapshot's files are shared. As a user who may not mount, it is a copy again.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from mle_ideator.sandboxes.workspaces.tracked import TrackedWorkspace

FILES, BYTES, CHANGED = 2000, 500_000_000, 5
ROUNDS, GROUP = 5, 8


class Times(dict[str, list[float]]):
    """Seconds by what was done."""

    def of(self, name: str, action: Callable[[], object]) -> None:
        start = time.perf_counter()
        action()
        self.setdefault(name, []).append(time.perf_counter() - start)


def fill(folder: Path) -> None:
    content = os.urandom(BYTES // FILES)
    for number in range(FILES):
        path = folder / f"part-{number % 40}" / f"{number}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def change(folder: Path, number: int) -> None:
    for index in range(CHANGED):
        path = folder / f"part-{index}" / f"{index}.bin"
        path.write_bytes(os.urandom(BYTES // FILES - number))
    time.sleep(0.02)


def measure(folder: Path) -> tuple[Times, str]:
    times = Times()
    first = TrackedWorkspace(folder / "first")
    first.open(None)
    fill(folder / "first")
    os.sync()
    times.of("first snapshot", partial(first.snapshot, folder / "start"))
    for number in range(ROUNDS):
        once(folder, first, times, number)
    strategy = group(folder, times)
    first.close()
    return times, strategy


def once(folder: Path, first: TrackedWorkspace, times: Times, number: int) -> None:
    opened = TrackedWorkspace(folder / "opened")
    times.of("full copy", partial(shutil.copytree, folder / "first", folder / "copy"))
    times.of("open", partial(opened.open, folder / "start"))
    for name, workspace in (("first", first), ("opened", opened)):
        what = "" if name == "first" else ", opened from one"
        change(folder / name, number)
        kept = folder / f"{name}-{number}"
        times.of(f"snapshot{what}", partial(workspace.snapshot, kept))
        change(folder / name, number + ROUNDS)
        times.of(f"restore{what}", partial(workspace.restore, kept))
    times.of("close, all kept", opened.close)
    for name in ("copy", "opened"):
        shutil.rmtree(folder / name)


def group(folder: Path, times: Times) -> str:
    """Open and close workspaces one after the other, as rollouts do."""
    for _ in range(ROUNDS):
        workspaces = [TrackedWorkspace(folder / f"rollout-{number}") for number in range(GROUP)]
        times.of(f"open {GROUP}", partial(open_all, workspaces, folder / "start"))
        times.of(f"close {GROUP}, two files kept", partial(close_all, workspaces))
        for number in range(GROUP):
            shutil.rmtree(folder / f"rollout-{number}")
    return workspaces[0].strategy


def open_all(workspaces: list[TrackedWorkspace], snapshot: Path) -> None:
    for workspace in workspaces:
        workspace.open(snapshot)


def close_all(workspaces: list[TrackedWorkspace]) -> None:
    for workspace in workspaces:
        workspace.close(keep=("solution.py", "submission.csv"))


def main(place: str) -> None:
    with tempfile.TemporaryDirectory(dir=place, prefix="bench-") as folder:
        times, strategy = measure(Path(folder))
    copy = median(times["full copy"])
    print(f"{FILES} files, {BYTES / 1e6:.0f} MB, {CHANGED} changed; opened by: {strategy}")
    for name, seconds in times.items():
        copies = GROUP if str(GROUP) in name else 1
        ratio = median(seconds) / (copies * copy)
        beside = f"{ratio:6.3f} of {'a full copy' if copies == 1 else f'{copies} full copies'}"
        print(f"{name:28} {1000 * median(seconds):8.1f} ms  {beside}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ".")
