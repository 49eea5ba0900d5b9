"""A process with the heavy modules imported, of which supervisors and their keepers are forks.

    python start.py fork_server MODULE...     with a socket (SOCK_SEQPACKET) as standard input

It belongs to the runtime and runs no agent code. Its first message says that it is ready, or why
not: a fork has only the thread that forked, so there must be no other. Then each request is a
file (what `supervisor` and `keeper` are told) and three more descriptors: lifeline, reports,
output. Or, for a kernel without a sandbox, what `plain_kernel` is told, with its standard
descriptors. The answer carries the pid, and a pidfd, of the fork.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
from collections.abc import Callable
from typing import Any

from . import keeper, plain_kernel, preloading, supervisor, system
from .kernel import Prepared
from .walls import Walls

_LONGEST = 1024


def main(modules: list[str]) -> Callable[[], Any] | int:
    system.prctl(system.PR_SET_DUMPABLE, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.chdir("/")
    runtime = socket.socket(fileno=os.dup(0))
    prepared = Prepared()  # first, so that what a kernel needs is not counted as preloaded
    lacking = preloading.preload(modules)
    threads = preloading.threads()
    gc.collect()
    gc.freeze()  # so that no fork copies pages for looking through them
    system.use_huge_pages()
    runtime.send(json.dumps({"lacking": lacking, "threads": threads}).encode())
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the runtime has a pidfd of each
    while True:
        said, descriptors, _, _ = socket.recv_fds(runtime, _LONGEST, 4)
        if not said:
            return 0
        pid = os.fork()
        if pid == 0:
            runtime.close()
            request, *descriptors = descriptors
            spec = _read(request)
            if "plain_kernel" in spec:
                return plain_kernel.become(spec, descriptors)
            return _supervisor(spec, descriptors, prepared)
        watched = os.pidfd_open(pid)
        socket.send_fds(runtime, [str(pid).encode()], [watched])
        for descriptor in (watched, *descriptors):
            os.close(descriptor)


def _read(request: int) -> dict[str, Any]:
    """In the fork only: what forks have in common is seen by all of them."""
    with os.fdopen(request, "rb") as file:
        file.seek(0)
        spec: dict[str, Any] = json.load(file)
    return spec


def _supervisor(
    spec: dict[str, Any], descriptors: list[int], prepared: Prepared
) -> Callable[[], Any]:
    """In the fork: become what `python start.py supervisor` is, around a keeper that is a fork."""
    system.usual_signals()
    os.setsid()
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    system.overwrite_variable(spec["mark"], spec["environment"][spec["mark"]])
    os.environ.clear()
    os.environ.update(spec["environment"])
    os.chdir(spec["cwd"])
    walls = Walls(spec["walls"]["bwrap"], spec["walls"]["options"]) if spec["walls"] else None

    def start(commands: int) -> Callable[[], Any]:
        reports = os.dup(supervisor.REPORTS)
        os.dup2(supervisor.OUTPUT, 1)

        def keep() -> Any:
            return keeper.keep(spec["keeper"], commands, reports, prepared)

        return walls.enter(spec["walls"]["cwd"], keep) if walls else keep

    return lambda: supervisor.supervise(spec, start)
