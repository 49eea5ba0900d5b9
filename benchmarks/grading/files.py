"""Bytes of a file that agent code wrote, without trusting it.

Covered: links, folders, pipes, devices and sockets are refused unopened; nothing blocks; at most
`limit` bytes are read. Not covered: links among the parent folders, which are the runtime's own.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from mle_ideator.types import Problem

_WHAT = (
    (stat.S_ISLNK, "is_link", "a symbolic link"),
    (stat.S_ISDIR, "is_folder", "a folder"),
    (stat.S_ISFIFO, "not_a_file", "a pipe"),
    (stat.S_ISSOCK, "not_a_file", "a socket"),
    (stat.S_ISCHR, "not_a_file", "a device"),
    (stat.S_ISBLK, "not_a_file", "a device"),
)


class Refused(Exception):
    """The submission can not be read any further: these problems."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(*problems)
        self.problems = problems


def refuse(code: str, message: str) -> Refused:
    """What to raise for one problem that ends the reading."""
    return Refused(Problem(code, message))


def read_regular_file(path: Path, limit: int) -> bytes:
    """All bytes of a regular file of at most `limit` bytes. Raises `Refused`."""
    try:
        _require_regular(path.name, path.lstat().st_mode)
        # if it was replaced since, NOFOLLOW refuses a link and NONBLOCK does not wait for a pipe
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with open(os.open(path, flags), "rb") as file:  # noqa: PTH123 (needs the flags)
            found = os.fstat(file.fileno())
            _require_regular(path.name, found.st_mode)
            if found.st_size > limit:
                raise _too_large(path.name, limit)
            data = file.read(found.st_size + 1)
            if len(data) > found.st_size:  # it grew
                data += file.read(limit + 1 - len(data))
    except FileNotFoundError:
        raise refuse("no_file", f"there is no {path.name}. Write it to the workspace.") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        message = f"{path.name} can not be read: {reason}. Write a plain file."
        raise refuse("unreadable", message) from None
    if len(data) > limit:
        raise _too_large(path.name, limit)
    return data


def _require_regular(name: str, mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    code, what = next(((c, w) for is_it, c, w in _WHAT if is_it(mode)), ("not_a_file", "no file"))
    raise refuse(code, f"{name} is {what}. Write a plain CSV file.")


def _too_large(name: str, limit: int) -> Refused:
    mib = limit / 2**20
    message = f"{name} has more than {mib:,.0f} MiB, far more than this task's rows can need."
    return refuse("too_large", f"{message} Write one row for each row of test.csv.")
