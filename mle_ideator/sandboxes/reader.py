"""The runtime's end of the pipe that a sandbox writes to. It is always read, so nobody blocks."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import termios
from pathlib import Path

from mle_ideator.sandboxes.output import OutputBuffer

_CHUNK = 64 * 1024
_PAUSE_S = 0.005
"""Small writes are gathered for so long: thousands of short lines cost one wake-up, not each."""


class PipeReader:
    """Collects what is written, `limit` characters of it if nothing else is said.

    The pipe has a name, `path`: a kernel in a container can not inherit it, but can open it.
    """

    def __init__(self, path: Path, limit: int) -> None:
        self._limit = limit
        self._buffer = OutputBuffer(limit)
        os.mkfifo(path, 0o600)
        self._reading_end = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self.writing_end = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        self._loop = asyncio.get_running_loop()
        self._resumption: asyncio.TimerHandle | None = None
        self._resume()

    def take(self) -> tuple[str, int]:
        """The text since the last time, and how many characters were cut from it."""
        self._drain()
        finished, self._buffer = self._buffer, OutputBuffer(self._limit)
        return finished.finish()

    def begin(self, limit: int) -> None:
        """Right after `take`: keep up to `limit` characters until the next one."""
        self._buffer = OutputBuffer(limit)

    def close(self) -> None:
        if self._resumption is not None:
            self._resumption.cancel()
        self._loop.remove_reader(self._reading_end)
        os.close(self._reading_end)
        os.close(self.writing_end)

    def _resume(self) -> None:
        self._loop.add_reader(self._reading_end, self._read_and_pause)

    def _read_and_pause(self) -> None:
        if self._read(_CHUNK) < _CHUNK:
            self._loop.remove_reader(self._reading_end)
            self._resumption = self._loop.call_later(_PAUSE_S, self._resume)

    def _drain(self) -> None:
        """Read what is in the pipe now, not what a busy writer adds meanwhile."""
        waiting = bytearray(4)
        fcntl.ioctl(self._reading_end, termios.FIONREAD, waiting)
        (left,) = struct.unpack("i", waiting)
        while left > 0:
            left -= self._read(min(left, _CHUNK)) or left

    def _read(self, size: int) -> int:
        try:
            data = os.read(self._reading_end, size)
        except BlockingIOError:
            return 0
        self._buffer.write(data)
        return len(data)
