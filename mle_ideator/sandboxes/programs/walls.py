"""How a fork gets inside walls: bubblewrap makes them around a process that waits, a fork joins it.

So the walls are bubblewrap's, and what was imported before stays.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
from collections.abc import Callable
from typing import Any

from . import system

_NAMESPACES = (
    0x00020000  # mounts
    | 0x02000000  # control groups
    | 0x04000000  # host name
    | 0x08000000  # messages
    | 0x10000000  # users
    | 0x20000000  # processes
    | 0x40000000  # network
)
_OPTIONS, _INFO, _FILTER = 3, 4, 5
_WAITS = ("/bin/sh", "-c", "echo; read -r _")
_CLEAR = 10
"""Descriptors from here on are in nobody's way."""


class Walls:
    """Begins to make walls with bubblewrap and its options, in a file; they end with this process.

    A second file, `OPTIONS.calls`, is the filter of system calls that the options refer to.
    """

    def __init__(self, bubblewrap: str, options: str) -> None:
        opened = _clear(os.open(options, os.O_RDONLY))
        calls = _clear(os.open(f"{options}.calls", os.O_RDONLY))
        waiting, self._held = map(_clear, os.pipe())
        self._ready, says_ready = map(_clear, os.pipe())
        self._info, says_info = map(_clear, os.pipe())
        given = {0: waiting, 1: says_ready, _OPTIONS: opened, _INFO: says_info, _FILTER: calls}
        words = ("bwrap", "--args", str(_OPTIONS), "--info-fd", str(_INFO), "--", *_WAITS)
        moves = [(os.POSIX_SPAWN_DUP2, here, there) for there, here in given.items()]
        os.posix_spawn(bubblewrap, words, os.environ, file_actions=moves)
        for descriptor in given.values():
            os.close(descriptor)

    def enter(self, cwd: str, then: Callable[[], Any]) -> Callable[[], Any]:
        """Go inside; there, `then` is to be done. Raises `OSError`.

        The process that calls this stays outside, and ends as the one inside does.
        """
        target = os.pidfd_open(self._first())
        system.setns(target, _NAMESPACES)
        os.close(target)
        inside = os.fork()  # only children live among the processes inside
        if inside:
            return lambda: _relay(inside)
        os.close(self._held)
        os.setsid()
        system.drop_privileges()
        os.chdir(cwd)
        return then

    def _first(self) -> int:
        """The first process inside, once all is mounted."""
        with os.fdopen(self._info, "rb") as told, os.fdopen(self._ready, "rb") as signs:
            if not signs.read(1):
                raise OSError("bwrap failed")
            first: int = json.load(told)["child-pid"]
        return first


def _clear(descriptor: int) -> int:
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _CLEAR)
    os.close(descriptor)
    return moved


def _relay(pid: int) -> int:
    """A signal as wrappers give it: 128 + number."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return code if code >= 0 else 128 - code
