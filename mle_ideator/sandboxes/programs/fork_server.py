"""A process with the heavy modules imported, of which supervisors and their keepers are forks.

    python start.py fork_server MODULE...     with a socket (SOCK_SEQPACKET) as standard input

It belongs to the runtime and runs no agent code. Each request is a file (what `supervisor` and
`keeper` are told) and three more descriptors: lifeline, reports, output. Or, for a kernel without a
sandbox, what `plain_kernel` is told, with its standard descriptors. The answer carries the pid, and
a pidfd, of the fork. One message carries neither: it says what could not be imported, and how many
threads there are. A fork has only the thread that forked, so with more than one nothing is forked.

Imports take seconds. The first request that comes meanwhile is not let wait for them: its keeper
imports the rest by itself. The others get forks that have everything.

Forking what is this large takes longer than most of what comes after it, so a *spare* waits for
the next request: a supervisor to be, and its keeper to be.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import socket
from collections.abc import Callable
from typing import Any

from . import keeper, plain_kernel, preloading, supervisor, system
from .kernel import Prepared
from .walls import Walls

_LONGEST = 1024
_REST_MS = 200
_LONG_REST_MS = 1000
Task = Callable[[], Any]


def main(modules: list[str]) -> Task | int:
    system.prctl(system.PR_SET_DUMPABLE, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.chdir("/")
    runtime = socket.socket(fileno=os.dup(0))
    system.no_input()
    prepared = Prepared()  # first, so that what a kernel needs is not counted as preloaded
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the runtime has a pidfd of each
    lacking, one_went_ahead = list[str](), False
    for number, module in enumerate(modules):
        if not one_went_ahead and _state(runtime, 0) & select.POLLIN and preloading.threads() == 1:
            if task := _fork(runtime, prepared, modules[number:]):
                return task
            one_went_ahead = True
            _state(runtime, _LONG_REST_MS)
        lacking += preloading.preload([module])
    threads = preloading.threads()
    runtime.send(json.dumps({"lacking": lacking, "threads": threads}).encode())
    if threads > 1:
        return 0
    os.closerange(runtime.fileno() + 1, os.sysconf("SC_OPEN_MAX"))  # what they have opened
    gc.collect()
    gc.freeze()  # so that no fork copies pages for looking through them
    system.use_huge_pages()
    while not _state(runtime, _REST_MS) & select.POLLHUP:
        if task := _fork(runtime, prepared, []):
            return task
    return 0


def _state(runtime: socket.socket, rest_ms: int) -> int:
    """Wait for a request, but no longer than what was started may need the processors; what can be
    done with the socket, as `poll` tells it."""
    poll = select.poll()
    poll.register(runtime, select.POLLIN)
    return next((event for _, event in poll.poll(rest_ms)), 0)


def _fork(runtime: socket.socket, prepared: Prepared, to_import: list[str]) -> Task | None:
    """Have one more spare and wait until it has a request, or has ended. In the spare, returns what
    it is to do."""
    taking, taken = os.pipe()
    if os.fork() == 0:
        os.close(taking)
        return _spare(runtime, taken, prepared, to_import)
    os.close(taken)
    os.read(taking, 1)
    os.close(taking)
    return None


def _spare(runtime: socket.socket, taken: int, prepared: Prepared, to_import: list[str]) -> Task:
    """Two processes that wait for the next request, and become what is asked for."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    family = supervisor.fork_keeper()
    if family.keeper == 0:
        here.close()
        runtime.close()
        os.close(taken)
        return lambda: _keeper(there, family.commands, prepared, to_import)
    there.close()
    said, descriptors, _, _ = socket.recv_fds(runtime, _LONGEST, 4)
    if not said:
        return lambda: 0
    os.write(taken, b".")
    os.close(taken)
    own = os.pidfd_open(os.getpid())
    socket.send_fds(runtime, [str(os.getpid()).encode()], [own])
    os.close(own)
    runtime.close()
    return _supervisor(here, family, descriptors)


def _supervisor(here: socket.socket, family: supervisor.Family, descriptors: list[int]) -> Task:
    """Become what `python start.py supervisor` is, or a kernel without one."""
    request, lifeline, reports, output = descriptors
    spec = _read(request)
    if "plain_kernel" in spec:
        here.close()
        with contextlib.suppress(ChildProcessError):  # reaped by the Linux kernel
            os.waitpid(family.keeper, 0)
        return plain_kernel.become(spec, descriptors[1:])
    socket.send_fds(here, [b"keep"], [request, reports, output])
    here.close()
    os.close(request)
    os.setsid()
    given = {supervisor.LIFELINE: lifeline, supervisor.REPORTS: reports, supervisor.OUTPUT: output}
    _settle(spec, given)
    return lambda: supervisor.supervise(family)


def _keeper(
    there: socket.socket, commands: int, prepared: Prepared, to_import: list[str]
) -> Task | int:
    """Become what `python start.py keeper` is, inside the walls."""
    said, descriptors, _, _ = socket.recv_fds(there, _LONGEST, 3)
    there.close()
    if not said:
        return 0
    request, reports, output = descriptors
    spec = _read(request)
    os.close(request)
    _settle(spec, {1: output, 2: output})
    walls = Walls(spec["walls"]["bwrap"], spec["walls"]["options"]) if spec["walls"] else None

    def keep() -> Any:
        return keeper.keep(spec["keeper"], commands, reports, prepared, to_import)

    task: Task = supervisor.confined(
        spec, lambda: walls.enter(spec["walls"]["cwd"], keep) if walls else keep
    )
    return task


def _read(request: int) -> dict[str, Any]:
    """In the fork only: what forks have in common is seen by all of them."""
    spec: dict[str, Any] = json.loads(os.pread(request, os.fstat(request).st_size, 0))
    return spec


def _settle(spec: dict[str, Any], descriptors: dict[int, int]) -> None:
    """Put descriptors where they belong, and take on the environment."""
    for number, descriptor in descriptors.items():
        os.dup2(descriptor, number)
    for descriptor in set(descriptors.values()):
        os.close(descriptor)
    system.overwrite_variable(spec["mark"], spec["environment"][spec["mark"]])
    os.environ.clear()
    os.environ.update(spec["environment"])
    os.chdir(spec["cwd"])
