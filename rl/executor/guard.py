"""The parent of a worker process: ends it, and all that it started, in time and for certain.

It runs nothing itself, so no hang of the worker's holds it up: not a loop in C, not a held
interpreter lock. Being a *subreaper*, it stays the ancestor of processes that left their session or
lost their parent. It is no child of the driver's: some of those (Ray's processes) kill their
children when they end, and then nobody would end the worker's. It acts when the driver lets go of
its standard input or is gone, when the time of the work is up, or when the worker has ended; then
it says which on its standard output.

`pebble`, the well-kept pool with hard timeouts, was looked at and not taken: it ends only the
worker itself; its workers take turns at one pipe under a lock, so that one killed at the wrong
moment breaks the pool; they outlive a driver that is killed while they work; and they know neither
resources nor retries. `concurrent.futures` has no timeouts at all.
"""

from __future__ import annotations

import math
import os
import select
import signal
import socket
import struct
import tempfile
import time
from contextlib import suppress
from typing import Literal, NamedTuple

from mle_ideator.sandboxes.private import PrivateFolder
from mle_ideator.sandboxes.programs import system, trees

_LIFELINE, _VERDICT, _OUTPUT = 0, 1, 2
_DEADLINE = struct.Struct("d")


class Verdict(NamedTuple):
    """Why a worker is no more."""

    why: Literal["ended", "timeout", "let_go"]
    code: int
    """Exit code of one that ended itself; negative: the signal."""


def told(text: str) -> Verdict:
    """What a guard said. Nothing, if it was killed itself: then so was its worker."""
    match text.split():
        case ["ended", code]:
            return Verdict("ended", int(code))
        case ["timeout", _]:
            return Verdict("timeout", 0)
        case ["let_go", _]:
            return Verdict("let_go", 0)
    return Verdict("ended", -signal.SIGKILL)


class Clock:
    """The worker's hand on the guard's deadline."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def set(self, seconds: float) -> None:
        """From now; infinite: no deadline."""
        os.write(self._descriptor, _DEADLINE.pack(time.monotonic() + seconds))


def fork_worker(connection: socket.socket) -> Clock:
    """Returns in the worker only; the calling process ends.

    `connection` is the worker's alone: it has to end with the worker. What that leaves in its
    temporary folder is removed, however it ends.
    """
    driver = os.pidfd_open(os.getppid())  # forks of the driver's may hold its lifeline, too
    if os.fork():
        os._exit(0)
    system.prctl(system.PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    scratch = PrivateFolder()
    wakeup = system.wake_on_child()
    reading, writing = os.pipe()
    worker = os.fork()
    if worker == 0:
        for descriptor in (reading, wakeup, driver):
            os.close(descriptor)
        _become_worker(scratch)
        return Clock(writing)
    os.close(writing)
    connection.close()
    verdict = _watch(worker, wakeup, reading, {_LIFELINE, driver})
    trees.end_all()
    with suppress(OSError):  # the next runtime that starts a sandbox tries again
        scratch.remove()
    os.write(_VERDICT, f"{verdict.why} {verdict.code}\n".encode())
    os._exit(0)


def _become_worker(scratch: PrivateFolder) -> None:
    """A session of its own: what it signals there does not reach its guard."""
    guard = os.getppid()
    system.usual_signals()
    os.setsid()
    system.prctl(system.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guard:
        os._exit(1)
    tempfile.tempdir = os.environ["TMPDIR"] = str(scratch.temporary)
    system.no_input()
    os.dup2(_OUTPUT, _VERDICT)


def _watch(worker: int, wakeup: int, clock: int, driver: set[int]) -> Verdict:
    """`driver`: what can be read when that is gone."""
    deadline: float | None = None
    watched = {wakeup, clock} | driver
    while True:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready, _, _ = select.select(watched, [], [], left)
        if wakeup in ready:
            os.read(wakeup, 4096)
            for pid, code in system.reap():
                if pid == worker:
                    return Verdict("ended", code)
        if clock in ready:
            said = os.read(clock, 64 * _DEADLINE.size)
            if said:
                deadline = _read_deadline(said)
            else:
                watched.remove(clock)  # the worker ends, or has closed all that it had open
        if not driver.isdisjoint(ready):
            return Verdict("let_go", 0)
        if deadline is not None and time.monotonic() >= deadline:
            return Verdict("timeout", 0)


def _read_deadline(said: bytes) -> float | None:
    """The last one that was set."""
    deadline: float = _DEADLINE.unpack(said[-_DEADLINE.size :])[0]
    return deadline if math.isfinite(deadline) else None
