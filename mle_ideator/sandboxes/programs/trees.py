"""Process trees, read from /proc, and their end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection, Iterable

from .system import reap, send_signal

_STOP_ROUNDS = 50
_PAUSE_S = 0.002


def below(roots: Iterable[int], without: Collection[int] = ()) -> set[int]:
    """Every process that has one of `roots` as ancestor, but none of `without`."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 fast
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as stat:  # noqa: PTH123
                    parent = int(stat.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry))
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        fresh = [pid for pid in children.get(waiting.pop(), ()) if pid not in without]
        found.update(fresh)
        waiting += fresh
    return found


def end_all(without: Callable[[], Collection[int]] = tuple) -> list[tuple[int, int]]:
    """End everything below this process, but for the trees of `without`; returns what was reaped.

    All is stopped first, so that nothing forks between being seen and being killed.
    """
    ended: list[tuple[int, int]] = []
    while pids := below([os.getpid()], without()):
        stopped: set[int] = set()
        for _ in range(_STOP_ROUNDS):
            fresh = below([os.getpid()], without()) - stopped
            if not fresh:
                break
            send_signal(fresh, signal.SIGSTOP)
            stopped |= fresh
        send_signal(stopped | pids, signal.SIGKILL)
        time.sleep(_PAUSE_S)
        ended += reap()
    return ended
