"""Reading what agent code wrote: regular files only, no links followed, size bounded."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
from pathlib import Path

Signature = tuple[int, int, int, int]


def signature(path: Path) -> Signature | None:
    """Changes whenever the file is written, even with the same bytes. `None` if it is not there.

    The change time can not be set by the owner of a file, unlike the modification time.
    """
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def read_regular(path: Path, max_bytes: int) -> bytes | None:
    """The bytes of a regular file, or `None` if it is none, is missing, or is larger.

    Never blocks on a FIFO, never follows a link out of the workspace, never reads a device.
    """
    content = read_head(path, max_bytes + 1)
    return content if content is not None and len(content) <= max_bytes else None


def read_head(path: Path, max_bytes: int) -> bytes | None:
    """The first bytes of a regular file, or `None` if it is none or is missing. As careful."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(max_bytes)
    finally:
        os.close(descriptor)


def lock(descriptor: int) -> bool:
    """Hold an open file as the only process, until it is closed; False if another one holds it.

    Where the file system knows no locks nobody is kept out.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EINVAL):
            raise
    return True


def replace_file(path: Path, content: bytes) -> None:
    """Write a file whole, whatever stood there before: never through a link, never half.

    A folder in its place is moved aside. Raises `OSError` if the folder can not be written to.
    """
    token = secrets.token_hex(8)
    part = path.with_name(f".{path.name}.{token}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    if path.is_dir() and not path.is_symlink():
        path.rename(path.with_name(f".{path.name}.{token}.aside"))
    part.replace(path)
