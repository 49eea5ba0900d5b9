"""Who made something that may outlive its maker, and whether that process is certainly gone."""

from __future__ import annotations

import os
from pathlib import Path


def this_process() -> str:
    """A line that names this process among all that this machine ever ran."""
    return f"{_boot()} {_namespace()} {os.getpid()} {_started(os.getpid())}"


def is_gone(owner: str) -> bool:
    """Has the process that called `this_process` ended? False where that can not be known.

    Ids of processes mean nothing in another container or on another machine.
    """
    match owner.split(" "):
        case [boot, namespace, pid, started] if namespace == _namespace() and pid.isdigit():
            return boot != _boot() or started != _started(int(pid))
    return False


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _namespace() -> str:
    return os.readlink("/proc/self/ns/pid")  # noqa: PTH115 no path


def _started(pid: int) -> str:
    """When it started, in clock ticks since the boot; empty if there is none of that id."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]
