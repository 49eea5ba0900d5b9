"""How often the memory limit of a control group was hit, as the Linux kernel counts it."""

from __future__ import annotations

import re
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")


def counter_of(pid: int) -> Path | None:
    """The file that counts the processes killed for memory in this process's group, if any."""
    try:
        groups = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    except OSError:
        return None
    for line in groups:
        _, controllers, path = line.split(":", 2)
        if controllers == "memory":
            place = _ROOT / "memory" / path.lstrip("/") / "memory.oom_control"
        elif not controllers:
            place = _ROOT / path.lstrip("/") / "memory.events"
        else:
            continue
        if place.is_file():
            return place
    return None


def killed(counter: Path | None) -> int:
    """How many processes were killed for memory so far; 0 where that can not be read."""
    try:
        text = counter.read_text() if counter else ""
    except OSError:
        return 0
    found = re.search(r"^oom_kill (\d+)$", text, re.MULTILINE)
    return int(found[1]) if found else 0
