"""Files copied as they stand: holes stay holes, blocks are shared where the file system can.

Agent code may write to a file while it is copied; what can be trusted of a copy is said with it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from mle_ideator.sandboxes.workspaces.folders import passes_by_permissions

Signature = tuple[int, int, int, int, int]
_FICLONE = 0x40049409
_COARSE = 5  # CLOCK_REALTIME_COARSE, which the times of files are taken from
_TRIES = 3
_BLOCK = 1 << 20
_SECOND_NS = 10**9
_LONGEST_TICK_S = 0.1


class Copied(NamedTuple):
    """What was copied."""

    status: os.stat_result
    """Of the original, when it was read."""
    signature: Signature | None
    """The original has this as long as nobody writes to it; `None` if that can not be relied on."""


def signature_of(status: os.stat_result) -> Signature:
    """Changes whenever a file is written, or its mode or owner set.

    The time of change can be set by nobody; it deceives only if the machine's clock is set back.
    """
    return (
        *(status.st_dev, status.st_ino, status.st_size),
        *(status.st_mtime_ns, status.st_ctime_ns),
    )


def coarse_now_ns() -> int:
    """A file with an earlier time of change than this gets another one if it changes now."""
    return time.clock_gettime_ns(_COARSE)


def is_past(signature: Signature, now_ns: int) -> bool:
    """Would a change now leave another signature? Some file systems keep times in seconds."""
    changed_ns = signature[4]
    return changed_ns + (0 if changed_ns % _SECOND_NS else 2 * _SECOND_NS) < now_ns


def wait_for_the_next_tick() -> None:
    """Until what was written so far has a time of change that is past: some milliseconds."""
    start, deadline = time.time_ns(), time.monotonic() + _LONGEST_TICK_S
    while coarse_now_ns() <= start and time.monotonic() < deadline:
        time.sleep(0.0005)


def copy_file(name: str, source: int, into: str, target: int) -> Copied:
    """Copy a regular file from one folder to a new one in another, both given as descriptors.

    The copy is its owner's alone. One that is being written is tried a few times, then taken as it
    is. Raises `OSError`.
    """
    for attempt in range(_TRIES):
        with _to_read(name, source) as original:
            now = coarse_now_ns()
            before = os.fstat(original)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            copy = os.open(into, flags, 0o600, dir_fd=target)
            try:
                _copy_content(original, copy, before.st_size)
            finally:
                os.close(copy)
            signature = signature_of(before)
            settled = signature == signature_of(os.fstat(original))
            if settled or attempt + 1 == _TRIES:
                reliable = settled and is_past(signature, now) and not _being_written(original)
                return Copied(before, signature if reliable else None)
        os.unlink(into, dir_fd=target)
    raise AssertionError("not reached")


def shares_blocks(source: Path, folder: Path) -> bool:
    """Can a copy of this file in that folder share its blocks?"""
    with suppress(OSError), source.open("rb") as original:
        copy = os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            return _cloned(original.fileno(), copy)
        finally:
            os.close(copy)
    return False


@contextmanager
def _to_read(name: str, folder: int) -> Iterator[int]:
    """A regular file that its owner may have closed to itself; put back as it was."""
    found = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    mode = None
    itself = Path(f"/proc/self/fd/{found}")
    try:
        status = os.fstat(found)
        if not stat.S_ISREG(status.st_mode):
            raise FileNotFoundError(errno.ENOENT, "it is no file any more", name)
        if not (status.st_mode & stat.S_IRUSR or passes_by_permissions()):
            mode = stat.S_IMODE(status.st_mode)
            itself.chmod(mode | stat.S_IRUSR)
        descriptor = os.open(itself, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
    finally:
        if mode is not None:
            with suppress(OSError):
                itself.chmod(mode)
        os.close(found)


def _copy_content(source: int, target: int, size: int) -> None:
    """At most `size` bytes, so that a file that grows is no endless one."""
    if size and _cloned(source, target):
        os.ftruncate(target, size)
        return
    for start, end in _data(source, size):
        _copy_range(source, target, start, end)
    os.ftruncate(target, size)


def _cloned(source: int, target: int) -> bool:
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError:
        return False
    return True


def _data(source: int, size: int) -> Iterator[tuple[int, int]]:
    """The parts that are no holes."""
    end = 0
    while end < size:
        try:
            start = os.lseek(source, end, os.SEEK_DATA)
            end = min(os.lseek(source, start, os.SEEK_HOLE), size)
        except OSError as error:
            if error.errno == errno.ENXIO:  # a hole up to its end
                return
            start, end = end, size
        if start < size:
            yield start, end


def _copy_range(source: int, target: int, start: int, end: int) -> None:
    while start < end:
        try:
            count = os.copy_file_range(source, target, end - start, start, start)
        except OSError as error:
            if error.errno not in _NOT_HERE:
                raise
            count = os.pwrite(target, os.pread(source, min(end - start, _BLOCK), start), start)
        if not count:
            return  # it became shorter
        start += count


_NOT_HERE = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM)


def _being_written(descriptor: int) -> bool:
    """Has anybody opened or mapped it for writing? Writes to a mapping leave no time behind.

    Where it can not be asked (another's file, some network file systems), no.
    """
    try:
        # Whoever opens it in the instant between the two is held up, and we are told by a signal
        # that does nothing unless somebody handles it.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False
