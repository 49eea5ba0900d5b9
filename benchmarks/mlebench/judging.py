"""A competition's own grade function, asked in a process of its own.

Covered: it ends within its time and memory, with all its processes; what it prints and what its
exceptions say goes nowhere. Not covered: it is code that the person installed, and runs as
the person.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from mle_ideator.benchmarks.mlebench.competitions import Competition
from mle_ideator.types import Value

PYTHON = "MLE_IDEATOR_MLEBENCH_PYTHON"
"""The interpreter to grade with: one in which mle-bench is installed; without it, this one."""
SECONDS = 600.0
MEMORY_GIB = 16.0
_SCRIPT = Path(__file__).with_name("judge.py")
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
"""Of the environment: no keys."""


class Verdict(Value, frozen=True):
    """What came of it. `why` tells nothing of the answers."""

    outcome: Literal["score", "refused", "failed", "unscored", "limit", "broken"]
    """Refused as an invalid submission; failed with another exception; no finite number; too
    long or too large; the grader or its answers can not be loaded."""
    value: float = 0.0
    why: str = ""


def judge(
    competition: Competition,
    submission: bytes,
    seconds: float = SECONDS,
    memory_gib: float = MEMORY_GIB,
) -> Verdict:
    """Grade the bytes of a submission. Never raises for what they are."""
    with tempfile.TemporaryDirectory(prefix="mle-ideator-judge-") as folder:
        file = Path(folder) / "submission.csv"
        file.write_bytes(submission)
        order = {
            "grade_fn": competition.config.grader.grade_fn,
            "entry": str(competition.entry),
            "root": str(competition.package_root) if competition.package_root else None,
            "answers": str(competition.answers),
            "submission": str(file),
            "memory": int(memory_gib * 2**30),
        }
        return _ask(order, Path(folder), seconds)


def _ask(order: Mapping[str, object], folder: Path, seconds: float) -> Verdict:
    python = os.environ.get(PYTHON) or sys.executable
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    try:
        process = subprocess.Popen(
            [python, "-P", str(_SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={**kept, "OPENBLAS_NUM_THREADS": "4", "OMP_NUM_THREADS": "4"},
            start_new_session=True,
        )
    except OSError as error:
        return Verdict("broken", why=f"{python} can not be started: {error.strerror}")
    with process:
        try:
            answer, _ = process.communicate(json.dumps(order).encode(), timeout=seconds)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            return Verdict("limit", why=f"took more than {seconds:g} s")
    return _understood(answer, process.returncode)


def _understood(answer: bytes, status: int) -> Verdict:
    try:
        return msgspec.json.decode(answer, type=Verdict)
    except msgspec.DecodeError:
        if status == -signal.SIGKILL:
            return Verdict("limit", why="was killed, most likely for its memory")
        return Verdict("failed", why=f"its process ended with status {status}")
