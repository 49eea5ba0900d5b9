"""Calls of the Linux kernel that Python's standard library does not have."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import platform
import resource
import signal
from collections.abc import Iterable, Mapping

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER = 1, 4, 24, 36
PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 38, 47, 4
_CAPABILITY_VERSION = 0x20080522
_MOST_CAPABILITIES = 64
_KEYCTL = {"x86_64": 250, "aarch64": 219}
_JOIN_SESSION_KEYRING = 1
_LIKELY_KILLED = "800"
_HUGE = 2 * 1024 * 1024
_ADVICE = 14, 25  # huge pages; collapse into them now
_ARG_START = 45
_ENV_START = 47
"""Among the fields of /proc/PID/stat that follow the name."""

KEEPERS_REPORTS, KEEPERS_COMMANDS = 3, 6
"""The descriptors on which a keeper that was started as a program reports, and is told what to do;
not its input, which whatever makes the walls would share with it. Those between are the walls'."""

libc = ctypes.CDLL(None, use_errno=True)


def check(result: int) -> None:
    """Raise `OSError` if the call that returned this was refused."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def prctl(option: int, value: int = 0) -> None:
    libc.prctl(option, value, 0, 0, 0)


def leave_keys_behind() -> None:
    """A session keyring of its own: the runtime's may hold keys. As far as that can be had."""
    number = _KEYCTL.get(platform.machine())
    if number is not None:
        libc.syscall(number, _JOIN_SESSION_KEYRING, 0)


def setns(descriptor: int, kinds: int) -> None:
    """Join the namespaces of the process that a pidfd stands for. Raises `OSError`."""
    check(libc.setns(descriptor, kinds))


def drop_privileges() -> None:
    """No capability, and none can be gained. Raises `OSError`."""
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    for capability in range(_MOST_CAPABILITIES):
        prctl(PR_CAPBSET_DROP, capability)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    check(libc.capset(header, (ctypes.c_uint32 * 6)()))
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def set_limits(limits: Mapping[str, int]) -> None:
    """Resource limits by name, as in `resource`; none is raised above what it is."""
    for name, wanted in limits.items():
        number = getattr(resource, name)
        _, hard = resource.getrlimit(number)
        bound = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        resource.setrlimit(number, (bound, bound))


def use_huge_pages() -> None:
    """For what is allocated now, as far as can be: a fork then copies a third less."""
    with open("/proc/self/maps") as maps:  # noqa: PTH123
        regions = [line.split() for line in maps]
    for place, rights, _, _, _, *name in regions:
        if rights == "rw-p" and name in ([], ["[heap]"]):
            start, end = (int(address, 16) for address in place.split("-"))
            start, end = -(-start // _HUGE) * _HUGE, end // _HUGE * _HUGE
            for advice in _ADVICE if start < end else ():
                libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), advice)


def overwrite_variable(name: str, value: str) -> None:
    """In the memory that the process was started with, which `/proc/PID/environ` shows.

    The value there must have the same length.
    """
    start, end = _memory(_ENV_START)
    place = ctypes.string_at(start, end - start).find(b"%s=" % name.encode()) if start else -1
    if place >= 0:
        ctypes.memmove(start + place + len(name) + 1, value.encode(), len(value))


def show_command(words: Iterable[str]) -> None:
    """In the memory that `/proc/PID/cmdline` shows, as far as there is room.

    The byte at its end says that this is one text, not words with zero bytes between them.
    """
    start, end = _memory(_ARG_START)
    if start and end - start > 1:
        text = os.fsencode(" ".join(words))[: end - start - 2]
        ctypes.memmove(start, text.ljust(end - start - 1, b"\0") + b"\1", end - start)


def _memory(field: int) -> tuple[int, int]:
    """The start and end of what `/proc/PID/stat` tells the place of."""
    fields = pathlib.Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    return int(fields[field]), int(fields[field + 1])


def join(groups: Iterable[str]) -> None:
    """Enter control groups, as one thread, given their `entrances`. Raises `OSError`."""
    for path in groups:
        pathlib.Path(path).write_text("0")


def die_before_the_runtime() -> None:
    """When memory runs out, agent code goes first."""
    with contextlib.suppress(OSError):
        pathlib.Path("/proc/self/oom_score_adj").write_text(_LIKELY_KILLED)


def wake_on_child() -> int:
    """A descriptor that can be read whenever a child has ended."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return reading


def usual_signals() -> None:
    """In a child: handlers as a new Python process has them."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGIO):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def no_input() -> None:
    """Standard input is empty."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)


def reap() -> list[tuple[int, int]]:
    """Children that have ended: their ids and exit codes (negative: the signal)."""
    ended: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended.append((pid, os.waitstatus_to_exitcode(status)))


def tell(descriptor: int, line: str) -> None:
    """Write a line; if nobody listens any more, that is noticed elsewhere."""
    with contextlib.suppress(OSError):
        os.write(descriptor, f"{line}\n".encode())


def send_signal(pids: Iterable[int], how: int) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, how)
