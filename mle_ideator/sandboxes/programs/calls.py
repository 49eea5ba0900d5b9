"""A filter of system calls, for good: what neither namespaces nor capabilities close.

Families of sockets that no network namespace holds (those of virtual machines) or that nobody
needs, the kernel's key store, and calls that had one hole after another: here, the lists follow
what container engines refuse. Namespaces of users, which give rights inside them. Files that run as
their owner: in a workspace of a runtime that root started, they would be root's outside. (The bit
for the group stays: folders have it, and pass it on.) Calls whose arguments lie in memory, where a
filter can not look, are said not to exist, so that libraries take those that came before them.

On a processor that is not listed there is no filter.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from typing import NamedTuple

from . import system

_PR_SET_SECCOMP, _FILTER = 22, 2
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _ANY, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_OTHER_TABLE = 0x40000000
"""Numbers from here on are another binary interface's, on x86."""
_FAMILIES = (1, 2, 10, 16)  # unix, the two internets, netlink
_IO_URING = (425, 426, 427)  # would open sockets past this filter
_UNSEEN = (435, 437)  # clone3, openat2
_NEW_USERS = 0x10000000
_CREATES = 0o20000100  # O_CREAT and O_TMPFILE: without them the mode is whatever lies there
_AS_OWNER = 0o4000
_Steps = list[tuple[int, int, int, int]]
"""Jumps go forward over so many steps: `(what, if so, if not, value)`."""


class _Calls(NamedTuple):
    """Numbers of system calls on one kind of processor."""

    architecture: int
    socket: int
    refused: tuple[int, ...]
    """add_key, request_key, keyctl, bpf, perf_event_open, userfaultfd."""
    bits: tuple[tuple[int, int, int], ...]
    """With the argument, counted from 0, that may have none of these bits: clone, unshare; chmod,
    fchmod, fchmodat, fchmodat2, mknod, mknodat, creat, as far as there are such."""
    opening: tuple[tuple[int, int], ...]
    """openat and open, with the argument that says how; the mode follows it."""


_CALLS = {
    "x86_64": _Calls(
        0xC000003E,
        41,
        (248, 249, 250, 321, 298, 323),
        (
            *((number, 0, _NEW_USERS) for number in (56, 272)),
            *((number, 1, _AS_OWNER) for number in (90, 91, 133, 85)),
            *((number, 2, _AS_OWNER) for number in (268, 452, 259)),
        ),
        ((257, 2), (2, 1)),
    ),
    "aarch64": _Calls(
        0xC00000B7,
        198,
        (217, 218, 219, 280, 241, 282),
        (
            *((number, 0, _NEW_USERS) for number in (220, 97)),
            (52, 1, _AS_OWNER),
            *((number, 2, _AS_OWNER) for number in (53, 452, 33)),
        ),
        ((56, 2),),
    ),
}


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def refuse_calls() -> None:
    """For this process and all that it starts, which can gain no privileges either."""
    code = filter_code()
    if not code:
        return
    system.prctl(system.PR_SET_NO_NEW_PRIVS, 1)
    program = _Program(len(code) // 8, code)
    system.check(system.libc.prctl(_PR_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0))


def filter_code() -> bytes:
    """As the Linux kernel takes it; empty on a processor that is not listed."""
    known = _CALLS.get(platform.machine())
    return b"".join(struct.pack("=HBBI", *step) for step in _steps(known)) if known else b""


def _steps(calls: _Calls) -> _Steps:
    refuse, no_family = _REFUSE | errno.EPERM, _REFUSE | errno.EAFNOSUPPORT
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 1, 0, calls.architecture),
        (_RETURN, 0, 0, refuse),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_AT_LEAST, 0, 1, _OTHER_TABLE),
        (_RETURN, 0, 0, refuse),
    ]
    for number in (*calls.refused, *_IO_URING):
        steps += _if_it_is(number, [(_RETURN, 0, 0, refuse)])
    for number in _UNSEEN:
        steps += _if_it_is(number, [(_RETURN, 0, 0, _REFUSE | errno.ENOSYS)])
    for number, argument, bits in calls.bits:
        steps += _if_it_is(number, _none_of(bits, argument))
    for number, how in calls.opening:
        mode = _none_of(_AS_OWNER, how + 1)
        creates = [_argument(how), (_ANY, 1, 0, _CREATES), (_RETURN, 0, 0, _ALLOW)]
        steps += _if_it_is(number, [*creates, *mode])
    family = [step for known in _FAMILIES for step in _if_it_is(known, [(_RETURN, 0, 0, _ALLOW)])]
    steps += _if_it_is(calls.socket, [_argument(0), *family, (_RETURN, 0, 0, no_family)])
    return [*steps, (_RETURN, 0, 0, _ALLOW)]


def _if_it_is(value: int, then: _Steps) -> _Steps:
    """`then` must come to an end."""
    return [(_EQUAL, 0, len(then), value), *then]


def _none_of(bits: int, argument: int) -> _Steps:
    refused, allowed = (_RETURN, 0, 0, _REFUSE | errno.EPERM), (_RETURN, 0, 0, _ALLOW)
    return [_argument(argument), (_ANY, 0, 1, bits), refused, allowed]


def _argument(number: int) -> tuple[int, int, int, int]:
    """Its lower half."""
    return _LOAD, 0, 0, _ARGUMENTS_AT + 8 * number
