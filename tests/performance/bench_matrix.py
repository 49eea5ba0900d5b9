"""Cells an hour, and what the runner adds to a cell beside running it by hand.

    python tests/performance/bench_matrix.py [--cells 8] [--steps 3] [--task image-segments]

The same cells are run one after the other with `mle-ideator run`, then as a matrix with 1 and with
2 workers. A cell is a session of the scripted implementer, so that the runner's own share shows.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

SOLUTION = """
import shutil
shutil.copy("input/sample_submission.csv", "submission.csv")
print("Validation score: 0.5")
"""
CELL = f"open('solution.py', 'w').write({SOLUTION!r}); exec(open('solution.py').read())"
WORKERS = (1, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=8)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--task", default="image-segments")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-matrix-"))
    try:
        actions = [{"type": "execute", "language": "python", "code": CELL}] * asked.steps
        (folder / "script.yaml").write_text(yaml.safe_dump(actions))
        common = [
            *("--task", asked.task, "--implementer", f"scripted:{folder / 'script.yaml'}"),
            *("--ideator", "null", "--sandbox", "local", "--steps", str(asked.steps)),
            *("--set", "threads=1"),
        ]
        run(["run", *common, "--out", str(folder / "first")])  # the task is built
        by_hand = by_hand_s(common, asked.cells, folder)
        print(f"cores {os.cpu_count()}, {asked.cells} cells of {asked.steps} steps, {asked.task}")
        report("by hand, one after the other", by_hand, asked.cells, by_hand)
        for workers in WORKERS:
            out = folder / f"matrix-{workers}"
            seeds = ["--seeds", str(asked.cells), "--workers", str(workers)]
            took = run(["bench", "run", *common, *seeds, "--out", str(out)])
            report(f"bench run, {workers} workers", took, asked.cells, by_hand)
        took = run(["bench", "run", "--out", str(folder / f"matrix-{WORKERS[0]}")])
        print(f"{'called again, all done':32} {took:7.1f} s")
    finally:
        shutil.rmtree(folder)


def by_hand_s(common: list[str], cells: int, folder: Path) -> float:
    return sum(
        run(["run", *common, "--seed", str(seed), "--out", str(folder / f"hand-{seed}")])
        for seed in range(cells)
    )


def run(arguments: list[str]) -> float:
    """Seconds that a call took."""
    start = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "mle_ideator", *arguments], check=True, stdout=subprocess.DEVNULL
    )
    return time.monotonic() - start


def report(what: str, took: float, cells: int, by_hand: float) -> None:
    beside = (took - by_hand) / cells
    print(
        f"{what:32} {took:7.1f} s  {took / cells:6.2f} s a cell  {3600 * cells / took:6.0f} cells "
        f"an hour  {beside:+6.2f} s a cell beside running it by hand"
    )


if __name__ == "__main__":
    main()
