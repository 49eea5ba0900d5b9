"""How long a person waits: for `--help`, and from `run` to the first observation.

    python tests/performance/bench_startup.py [RUNS]

Targets: `--help` within 0.3 s, the first observation within 2 s. Beside them, for scale, the
start of this Python alone.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from mle_ideator.sandboxes import STRONGEST_FIRST, choose_sandbox

TASK = "image-segments"


def whole(*command: str) -> float:
    """Seconds that a command takes as a process."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def first_observation(sandbox: str) -> float:
    """Seconds from the start of `run` until the first step's outcome is printed."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            *(sys.executable, "-m", "mle_ideator", "run", "--task", TASK, "--steps", "1"),
            *("--sandbox", sandbox, "--out", str(Path(folder, "run"))),
        ]
        start = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith("[1] ok"):
                    seconds = time.perf_counter() - start
                    break
            else:
                raise SystemExit(f"no first observation in the {sandbox} sandbox")
            process.stdout.read()
        return seconds


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    python = [sys.executable, "-c", "pass"]
    help_ = [sys.executable, "-m", "mle_ideator", "--help"]
    first_observation("local")  # builds the task, if this is its first use
    print(f"medians of {runs} runs")
    print(f"python -c pass             {median(whole(*python) for _ in range(runs)):.3f} s")
    print(f"mle-ideator --help         {median(whole(*help_) for _ in range(runs)):.3f} s")
    for sandbox in STRONGEST_FIRST:
        if reason := choose_sandbox(sandbox)[1].unavailable():
            print(f"first observation, {sandbox:10}  {reason}")
            continue
        seconds = median(first_observation(sandbox) for _ in range(runs))
        print(f"first observation, {sandbox:10}  {seconds:.2f} s")


if __name__ == "__main__":
    main()
