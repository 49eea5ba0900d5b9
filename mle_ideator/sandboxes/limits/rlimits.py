"""The bounds that the system keeps for each process by itself, as plain numbers."""

from __future__ import annotations

import math
import os
from pathlib import Path

from mle_ideator.protocols import SandboxLimits
from mle_ideator.sandboxes.facts import bound_bytes

_SPARE_CPU_S = 10


def rlimits(limits: SandboxLimits, *, grouped: bool) -> dict[str, int]:
    """Soft and hard bound by name, as in the module `resource`; inherited by all it starts.

    `grouped`: a control group holds memory and processes, which is better, since these here hold
    for one process (`RLIMIT_DATA`) or for all of this user's (`RLIMIT_NPROC`; not for root).
    """
    bounds = {"RLIMIT_CORE": 0, "RLIMIT_FSIZE": file_bytes(limits)}
    if limits.cpu_s is not None:  # the watcher is first, unless it was stopped itself
        bounds["RLIMIT_CPU"] = math.ceil(limits.cpu_s) + _SPARE_CPU_S
    if not grouped:
        bounds["RLIMIT_DATA"] = bound_bytes(limits)
        if os.geteuid() != 0:
            bounds["RLIMIT_NPROC"] = _threads_of(os.getuid()) + limits.processes
    return bounds


def file_bytes(limits: SandboxLimits) -> int:
    """What one file may hold."""
    return int(limits.file_gib * 2**30)


def _threads_of(user: int) -> int:
    """How many this user has now: the system's bound counts them all."""
    count = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if folder.stat().st_uid == user:
                count += folder.joinpath("task").stat().st_nlink - 2
        except OSError:
            continue
    return count
