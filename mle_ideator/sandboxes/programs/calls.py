"""A filter of system calls, for good: what neither namespaces nor capabilities close.

Families of sockets that no network namespace holds (those of virtual machines) or that nobody
needs, the kernel's key store, and calls that had one hole after another. The lists follow what
container engines refuse. On a processor that is not listed there is no filter.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

from . import system

_PR_SET_SECCOMP, _FILTER = 22, 2
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
_OTHER_TABLE = 0x40000000
"""Numbers from here on are another binary interface's, on x86."""
_FAMILIES = (1, 2, 10, 16)  # unix, the two internets, netlink
_IO_URING = (425, 426, 427)  # would open sockets past this filter
# architecture, `socket`, then add_key, request_key, keyctl, bpf, perf_event_open, userfaultfd
_CALLS = {
    "x86_64": (0xC000003E, 41, (248, 249, 250, 321, 298, 323, *_IO_URING)),
    "aarch64": (0xC00000B7, 198, (217, 218, 219, 280, 241, 282, *_IO_URING)),
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
    if system.libc.prctl(_PR_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def filter_code() -> bytes:
    """As the Linux kernel takes it; empty on a processor that is not listed."""
    known = _CALLS.get(platform.machine())
    return _code(*known) if known else b""


def _code(architecture: int, socket: int, refused: tuple[int, ...]) -> bytes:
    """Jumps go forward over so many steps: `(what, if so, if not, value)`."""
    refuse, no_family = _REFUSE | errno.EPERM, _REFUSE | errno.EAFNOSUPPORT
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, refuse),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_AT_LEAST, 0, 1, _OTHER_TABLE),
        (_RETURN, 0, 0, refuse),
    ]
    for number in refused:
        steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, refuse)]
    steps += [(_EQUAL, 1, 0, socket), (_RETURN, 0, 0, _ALLOW)]
    steps += [(_LOAD, 0, 0, _FIRST_ARGUMENT_AT)]
    for family in _FAMILIES:
        steps += [(_EQUAL, 0, 1, family), (_RETURN, 0, 0, _ALLOW)]
    steps += [(_RETURN, 0, 0, no_family)]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)
