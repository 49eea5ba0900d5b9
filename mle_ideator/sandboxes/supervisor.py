"""The parent of one kernel: started as a program of its own, with the standard library only.

    python -I -S supervisor.py MAX_FILE_BYTES NO_NEW_PRIVILEGES COMMAND...

Standard input is its lifeline: when that closes (the sandbox ends, or the runtime was killed), it
kills everything below itself until nothing is left. As the first process of a container it ends
that, too. Being a *subreaper*, it stays the ancestor of processes that left their session or lost
their parent. Standard output carries reports, `started PID` and `exit CODE` (negative: the signal).
Standard error becomes the output of the command.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import resource
import select
import signal
import sys
import time

LIFELINE, REPORTS, OUTPUT = 0, 1, 2
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 36, 38
_STOP_ROUNDS = 50


def main() -> None:
    max_file_bytes, no_new_privileges, *command = sys.argv[1:]
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    wakeup = _wake_on_child()
    child = os.fork()
    if child == 0:
        _become(command, libc, int(max_file_bytes), no_new_privileges == "1")
    if os.getpid() == 1:  # agent code in a container sees it, and runs as the same user
        libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    _report(f"started {child}")
    _serve(child, wakeup)
    _end_all()


def _wake_on_child() -> int:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return reading


def _become(
    command: list[str], libc: ctypes.CDLL, max_file_bytes: int, no_new_privileges: bool
) -> None:
    """In the child: limits, then the command. Never returns."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if no_new_privileges:
            libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        _limit(max_file_bytes)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(OUTPUT, 1)
        os.execvp(command[0], command)  # noqa: S606 that is what it is for
    except BaseException as error:
        os.write(OUTPUT, f"{command[0]}: {error}\n".encode())
    os._exit(127)


def _limit(max_file_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    limit = max_file_bytes if hard == resource.RLIM_INFINITY else min(hard, max_file_bytes)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    # when memory runs out, agent code goes first, not the runtime
    with contextlib.suppress(OSError):
        pathlib.Path("/proc/self/oom_score_adj").write_text("800")


def _serve(child: int, wakeup: int) -> None:
    """Reap until the lifeline closes."""
    while True:
        ready, _, _ = select.select([LIFELINE, wakeup], [], [])
        if wakeup in ready:
            os.read(wakeup, 4096)
            _reap(child)
        if LIFELINE in ready and not os.read(LIFELINE, 4096):
            return


def _reap(child: int | None = None) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if pid == child:
            _report(f"exit {os.waitstatus_to_exitcode(status)}")


def _report(line: str) -> None:
    with contextlib.suppress(OSError):  # nobody listens any more: the lifeline will say so too
        os.write(REPORTS, f"{line}\n".encode())


def _end_all() -> None:
    """Stop everything first, so that nothing forks between being seen and being killed."""
    while pids := _below():
        stopped: set[int] = set()
        for _ in range(_STOP_ROUNDS):
            fresh = [pid for pid in _below() if pid not in stopped]
            if not fresh:
                break
            _signal(fresh, signal.SIGSTOP)
            stopped.update(fresh)
        _signal(stopped.union(pids), signal.SIGKILL)
        time.sleep(0.002)
        _reap()


def _signal(pids: list[int] | set[int], how: int) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, how)


def _below() -> list[int]:
    """Every process whose ancestor this one is."""
    parents = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 fast
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as stat:  # noqa: PTH123
                    parents[int(entry)] = int(stat.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue
    below = {os.getpid()}
    grown = True
    while grown:
        found = {pid for pid, parent in parents.items() if parent in below and pid not in below}
        below |= found
        grown = bool(found)
    below.discard(os.getpid())
    return sorted(below)


if __name__ == "__main__":
    main()
