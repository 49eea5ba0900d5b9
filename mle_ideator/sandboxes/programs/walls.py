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
_OPTIONS, _INFO = 3, 4
_WAITS = ("/bin/sh", "-c", "echo; read -r _")
_CLEAR = 10
"""Descriptors from here on are in nobody's way."""


def enter(options: str, cwd: str, then: Callable[[], Any]) -> Callable[[], Any]:
    """Make walls with bubblewrap's options, in a file, and go inside; there, `then` is to be done.

    This process stays outside and ends as the one inside does. Raises `OSError`.
    """
    waiting, held = os.pipe()
    target = os.pidfd_open(_built(options, waiting))
    os.close(waiting)
    system.setns(target, _NAMESPACES)
    os.close(target)
    inside = os.fork()  # only children live among the processes inside
    if inside:
        return lambda: _relay(inside)
    os.close(held)
    os.setsid()
    system.drop_privileges()
    os.chdir(cwd)
    return then


def _built(options: str, waiting: int) -> int:
    """Returns the first process inside, once all is mounted; it ends when `waiting` does."""
    (ready, says_ready), (info, says_info) = os.pipe(), os.pipe()
    if os.fork() == 0:
        _become_bubblewrap(options, waiting, says_ready, says_info)
    os.close(says_ready)
    os.close(says_info)
    with os.fdopen(info, "rb") as told, os.fdopen(ready, "rb") as signs:
        if not signs.read(1):
            raise OSError("bwrap failed")
        first: int = json.load(told)["child-pid"]
    return first


def _become_bubblewrap(options: str, waiting: int, ready: int, info: int) -> None:
    try:
        opened = os.open(options, os.O_RDONLY)
        moved = [
            fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _CLEAR) for fd in (waiting, ready, opened, info)
        ]
        for number, descriptor in zip((0, 1, _OPTIONS, _INFO), moved, strict=True):
            os.dup2(descriptor, number)
        words = ("bwrap", "--args", str(_OPTIONS), "--info-fd", str(_INFO), "--", *_WAITS)
        os.execvp(words[0], words)  # noqa: S606 that is what it is for
    finally:
        os._exit(127)


def _relay(pid: int) -> int:
    """A signal as wrappers give it: 128 + number."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os._exit(code if code >= 0 else 128 - code)
