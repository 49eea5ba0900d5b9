"""Which processes belong to this one."""

from __future__ import annotations

import os
from contextlib import suppress

import psutil


def children() -> set[int]:
    """Ids of all descendants but fork servers and their spares, which stay for the next sandbox.

    What becomes a sandbox's supervisor leaves the fork server's session.
    """
    found = psutil.Process().children(recursive=True)
    servers, sessions = set(), {}
    for process in found:
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            sessions[process.pid] = os.getsid(process.pid)
            if process.ppid() == os.getpid() and "fork_server" in process.cmdline():
                servers.add(process.pid)
    return {pid for pid, session in sessions.items() if session not in servers}
