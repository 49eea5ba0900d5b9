"""What runs below a sandbox's supervisor, read from /proc; and its end, by recorded id only."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from mle_ideator.sandboxes.environment import MARK
from mle_ideator.sandboxes.output import one_line

_PROC = Path("/proc")
_BOOKKEEPING = ("resource_tracker", "semaphore_tracker")
_SHOWN = 80
"""Characters of a command line."""


class Process(NamedTuple):
    """One process: its id on this machine, as agent code sees it, and its command line."""

    pid: int
    parent: int
    pid_inside: int
    command: str

    def __str__(self) -> str:
        return f"pid {self.pid_inside}: {one_line(self.command, _SHOWN)}"


def descendants(root: int) -> list[int]:
    """All processes below `root`, parents before children."""
    found: list[int] = []
    waiting = [root]
    while waiting:
        own = children(waiting.pop())
        found += own
        waiting += own
    return found


def trees(roots: Iterable[int]) -> set[int]:
    """They and all processes below them."""
    return {pid for root in roots for pid in (root, *descendants(root))}


def children(pid: int) -> list[int]:
    """Its own, without theirs."""
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 twice as fast
            with open(f"/proc/{pid}/task/{task}/children", "rb") as listing:  # noqa: PTH123
                found += map(int, listing.read().split())
    except OSError:
        pass  # it has ended, or the kernel keeps no such list: `kill_below` looks again
    return found


def lives(pid: int) -> bool:
    """A zombie does not. Unlike a command line, this can be read while the process forks."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def describe(pid: int) -> Process | None:
    """The process, or `None` if it has ended (a zombie has)."""
    try:
        status = (_PROC / str(pid) / "status").read_text(errors="replace")
        command = (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return None
    fields = dict(line.split(":", 1) for line in status.split("\n") if ":" in line)
    if fields["State"].split()[0] in "ZX":
        return None
    words = command.replace(b"\0", b" ").decode(errors="replace").strip()
    return Process(
        pid,
        int(fields["PPid"]),
        int(fields.get("NSpid", str(pid)).split()[-1]),
        words or f"[{fields['Name'].strip()}]",
    )


def agents_below(root: int, protected: Collection[int]) -> list[Process]:
    """What agent code started below `root` and still runs, without Python's own helpers."""
    return list(agents(pid for pid in descendants(root) if pid not in protected).values())


def agents(pids: Iterable[int]) -> dict[int, Process]:
    """Those that live and are no helpers of Python's own."""
    found = (process for process in map(describe, pids) if process)
    return {p.pid: p for p in found if not any(name in p.command for name in _BOOKKEEPING)}


def kill(pids: Iterable[int], how: int = signal.SIGKILL) -> None:
    """Signal each; one that has ended already is no error."""
    for pid in pids:
        try:
            os.kill(pid, how)
        except (ProcessLookupError, PermissionError):
            continue


def marked(mark: str) -> list[int]:
    """Processes that carry the sandbox's mark in the environment they were started with."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in _PROC.iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def kill_marked(mark: str, patience_s: float = 1.0) -> None:
    """End strays that got away from their supervisor."""
    deadline = time.monotonic() + patience_s
    while (strays := marked(mark)) and time.monotonic() < deadline:
        kill(strays)
        time.sleep(0.01)
