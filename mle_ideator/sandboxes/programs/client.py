"""`python FILE ...`, as agent code calls it: has the keeper run it, and ends as it ends.

    python -I -S client.py FILE ...

Where that is not possible it becomes a new Python. It runs before each script, so it does without
the modules that take long to import, `socket` and `json` among them.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _socket
import os
import resource
import sys
from array import array

ADDRESS = "MLE_IDEATOR_KEEPER"
LONGEST = 192 * 1024
"""Bytes of a request."""
RUNNING = b"running"
"""The answer to a request that is done here: from then on there is no way back."""
_PATIENCE_S = 2.0
"""A keeper that has not answered by then is busy, or was stopped."""
_PASSED_ON = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGALRM", "SIGUSR1", "SIGUSR2")
_STANDARD = ["0", "1", "2"]
_LIMITS = range(16)
"""All that Linux has."""


def main(arguments: list[str]) -> int:
    if _signal.getsignal(_signal.SIGINT) != _signal.SIG_IGN:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    warm = arguments[1:] if arguments[0] == "-u" else arguments  # nothing is buffered anyway
    keeper = _accepted(warm)
    if keeper is None:
        os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606 a new one
    _pass_signals_on(keeper)
    word, _, code = keeper.recv(LONGEST).partition(b" ")
    if word == b"cold":
        os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606
    return _end_like(int(code) if word == b"exit" else -_signal.SIGKILL)


def _accepted(arguments: list[str]) -> _socket.socket | None:
    """The connection on which a keeper that runs it will say how it ended."""
    try:
        if sorted(os.listdir("/proc/self/fd"))[:-1] != _STANDARD:
            return None
        request = _request(arguments)
        if len(request) > LONGEST:
            return None
        keeper = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        if keeper.fileno() <= 2:  # it took the place of one that was closed
            return None
        keeper.settimeout(_PATIENCE_S)
        keeper.connect(os.environ[ADDRESS])
        rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array("i", (0, 1, 2)))
        keeper.sendmsg([request], [rights])
        if keeper.recv(LONGEST) != RUNNING:
            return None
    except (OSError, KeyError):
        return None
    keeper.settimeout(None)
    return keeper


def limits() -> str:
    return ",".join(f"{soft}:{hard}" for soft, hard in map(resource.getrlimit, _LIMITS))


def processors() -> str:
    return ",".join(map(str, sorted(os.sched_getaffinity(0))))


def _request(arguments: list[str]) -> bytes:
    """Fields with zero bytes between them, which none of them can contain."""
    umask = os.umask(0o077)
    os.umask(umask)
    signals = sorted(_signal.valid_signals())
    ignored = [number for number in signals if _signal.getsignal(number) == _signal.SIG_IGN]
    blocked = sorted(_signal.pthread_sigmask(_signal.SIG_BLOCK, ()))
    fields = (
        *("script", umask, os.getpriority(os.PRIO_PROCESS, 0), processors(), limits()),
        *(",".join(map(str, ignored)), ",".join(map(str, blocked))),
        *(os.getcwd(), len(arguments), *arguments),
    )
    variables = [name + b"=" + value for name, value in os.environb.items()]
    return b"\0".join([*(os.fsencode(str(field)) for field in fields), *variables])


def _pass_signals_on(keeper: _socket.socket) -> None:
    def hand_on(number: int, _: object) -> None:
        try:
            keeper.send(b"signal\0%d" % number)
        except OSError:
            pass  # it has ended: so will this

    for name in _PASSED_ON:
        number = getattr(_signal, name)
        if _signal.getsignal(number) != _signal.SIG_IGN:
            _signal.signal(number, hand_on)


def _end_like(code: int) -> int:
    """By the same signal, if it was one."""
    if code >= 0:
        return code
    if -code not in (_signal.SIGKILL, _signal.SIGSTOP):
        _signal.signal(-code, _signal.SIG_DFL)
    os.kill(os.getpid(), -code)
    return 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
