"""What runs below a sandbox's supervisor, read from /proc; and its end, by recorded id only."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from mle_ideator.sandboxes.environment import MARK
from mle_ideator.sandboxes.output import one_line

_PROC = Path("/proc")
_TRACKER = re.compile(
    r"from (multiprocessing|(joblib\.externals\.)?loky\.backend)\.resource_tracker "
    r"import main; ?main\(\d+(, (\d+|True|False))?\)"
)
"""What Python is told to run as a helper of a process that has workers."""
_CLIENT = ("-I", "-S")
_SHOWN = 80
"""Characters of a command line."""


class Process(NamedTuple):
    """One process: its id on this machine, as agent code sees it, and its command line."""

    pid: int
    parent: int
    pid_inside: int
    words: tuple[str, ...]

    @property
    def command(self) -> str:
        return " ".join(self.words)

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
    return _stat(pid)[0] not in "ZX"


def _stat(pid: int) -> tuple[str, str]:
    """Its state and its parent; as of a zombie without one, if it has ended."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return "X", "0"
    state, parent = stat.rpartition(")")[2].split()[:2]
    return state, parent


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
    words = tuple(command.decode(errors="replace").strip("\0 ").split("\0"))
    return Process(
        pid,
        int(fields["PPid"]),
        int(fields.get("NSpid", str(pid)).split()[-1]),
        words if words != ("",) else (f"[{fields['Name'].strip()}]",),
    )


def described(pids: Iterable[int]) -> list[Process]:
    """Those that live."""
    return [process for process in map(describe, pids) if process]


def is_tracker(process: Process, kernel: int) -> bool:
    """Is it Python's own helper of that kernel, not something that bears its name?"""
    *flags, option, code = ("", "", *process.words)
    plain = all(flag.startswith("-") for flag in flags[3:])
    return process.parent == kernel and plain and option == "-c" and bool(_TRACKER.fullmatch(code))


def without_clients(found: Collection[Process]) -> list[Process]:
    """Without the clients of scripts that run warm, where these are among them, too; else a client
    is told as the script that it runs: its own command may be cut before that."""
    runs = [process.command for process in found if len(process.words) == 1]

    def has_run(process: Process) -> bool:
        asked = _asked_for(process)
        run = next((run for run in runs if run == asked or _is_cut(run, asked)), None)
        if run is not None:
            runs.remove(run)  # it stands for one client only
        return run is not None

    alone = [(process, _asked_for(process)) for process in found if not has_run(process)]
    return [process._replace(words=(asked,)) if asked else process for process, asked in alone]


def _asked_for(client: Process) -> str:
    """The command of the script that it runs; empty if it is no client."""
    python, program, arguments = client.words[:3], client.words[3:4], client.words[4:]
    if python[1:] != _CLIENT or not "".join(program).endswith("/client.py"):
        return ""
    return " ".join(("python", *(arguments[1:] if arguments[:1] == ("-u",) else arguments)))


def _is_cut(run: str, asked: str) -> bool:
    """A run shows as much of its command as there is room for."""
    return len(run) > _SHOWN and asked.startswith(run)


def is_below(pid: int, root: int) -> bool:
    """Has it `root` as ancestor?"""
    while pid not in (0, 1, root):
        pid = int(_stat(pid)[1])
    return pid == root


def kill(pids: Iterable[int], how: int, still: Callable[[int], bool]) -> None:
    """Signal each that is `still` what it was when it was found: ids are used again."""
    for pid in pids:
        with suppress(OSError):  # it has ended
            process = os.pidfd_open(pid)
            try:
                if still(pid):
                    signal.pidfd_send_signal(process, how)
            finally:
                os.close(process)


def marked(mark: str) -> list[int]:
    """Processes that carry the sandbox's mark in the environment they were started with."""
    found = (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())
    return [pid for pid in found if pid != os.getpid() and _is_marked(pid, mark)]


def _is_marked(pid: int, mark: str) -> bool:
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return False
    return f"{MARK}={mark}".encode() in environment.split(b"\0")


def kill_marked(mark: str, patience_s: float = 1.0) -> None:
    """End strays that got away from their supervisor."""
    deadline = time.monotonic() + patience_s
    while (strays := marked(mark)) and time.monotonic() < deadline:
        kill(strays, signal.SIGKILL, lambda pid: _is_marked(pid, mark))
        time.sleep(0.01)
