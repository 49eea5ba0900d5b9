"""Warm start: processes with the heavy modules imported, of which supervisors are forks.

There is one fork server for each environment and list of modules, started when the first sandbox
needs it and kept until the runtime's process ends, or `close_all`.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

from mle_ideator.errors import SandboxError
from mle_ideator.sandboxes import processes
from mle_ideator.sandboxes.environment import MARK, MARK_LENGTH, OF_ONE_SANDBOX
from mle_ideator.sandboxes.launching import END_TIMEOUT_S
from mle_ideator.sandboxes.placement import PROGRAMS, Placement, own_libraries_only
from mle_ideator.waiting import finish

_log = logging.getLogger(__name__)

_READY_TIMEOUT_S = 120.0
_FORK_TIMEOUT_S = 10.0
_LONGEST = 64 * 1024
# A home is looked for by some modules; pyarrow's allocator must not start its thread.
_ONLY_HERE = {
    "HOME": "/",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    MARK: "0" * MARK_LENGTH,  # where forks write theirs
}
_servers: dict[tuple[object, ...], ForkServer] = {}
_failed: dict[tuple[object, ...], str] = {}
"""Why there is none: it took seconds to find out."""
_one_at_a_time = threading.Lock()


def fork_server(environment: Mapping[str, str], modules: tuple[str, ...]) -> ForkServer:
    """The one for these; blocks while it imports. Raises `SandboxError` if it can not be had."""
    common = {name: value for name, value in environment.items() if name not in OF_ONE_SANDBOX}
    key = (os.getpid(), tuple(sorted(common.items())), modules)
    with _one_at_a_time:
        if why := _failed.get(key):
            raise SandboxError(why)
        server = _servers.get(key)
        if server is None or not server.alive:
            try:
                server = _servers[key] = ForkServer(common, modules)
            except SandboxError as error:
                _failed[key] = str(error)
                raise
    return server


def close_all() -> None:
    """End every fork server of this process; sandboxes that are open stay."""
    with _one_at_a_time:
        for server in _servers.values():
            server.close()
        _servers.clear()


atexit.register(close_all)


class ForkServer:
    """A running one. Its methods block for milliseconds."""

    def __init__(self, environment: Mapping[str, str], modules: tuple[str, ...]) -> None:
        self._turn = threading.Lock()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, tempfile.TemporaryFile() as said:
            self._process = subprocess.Popen(
                [
                    # no path: forks show this command to agent code
                    *(sys.executable, *own_libraries_only(), "start.py", "fork_server"),
                    *modules,
                ],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=said,
                env={**environment, **_ONLY_HERE},
                cwd=PROGRAMS,
                start_new_session=True,
            )
            theirs.close()
            try:
                self._wait_until_ready()
            except SandboxError as error:
                self.close()
                said.seek(0)
                wrote = said.read().decode(errors="replace").strip()[-500:]
                raise SandboxError(f"{error}{wrote and f'; it wrote: {wrote}'}") from None

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def fork(self, spec: Mapping[str, Any], descriptors: list[int]) -> tuple[int, int]:
        """A supervisor with these as lifeline, reports and output: its pid, and a pidfd of it."""
        request = json.dumps(spec).encode()
        with self._turn:
            try:
                self._socket.settimeout(_FORK_TIMEOUT_S)
                socket.send_fds(self._socket, [request], descriptors)
                said, received, _, _ = socket.recv_fds(self._socket, _LONGEST, 1)
            except OSError as error:
                self.close()
                raise SandboxError(f"the fork server does not answer: {error}") from error
        if not said:
            raise SandboxError("the fork server has ended")
        return int(said), received[0]

    def close(self) -> None:
        self._socket.close()
        self._process.kill()
        self._process.wait()

    def _wait_until_ready(self) -> None:
        self._socket.settimeout(_READY_TIMEOUT_S)
        try:
            said = self._socket.recv(_LONGEST)
        except TimeoutError as error:
            raise SandboxError("the modules were not imported in time") from error
        if not said:
            raise SandboxError("a module ended the process that imported it")
        told = json.loads(said)
        if told["threads"] > 1:
            raise SandboxError("a module has started threads, which a fork does not have")
        if told["lacking"]:
            _log.warning("could not be imported in advance: %s", "; ".join(told["lacking"]))


class ForkedProcess:
    """A supervisor that is a fork of a warm process."""

    def __init__(self, server: ForkServer) -> None:
        self._server = server
        self._lifeline = self._reports = self._exit = -1
        self.pid = 0

    async def start(self, placement: Placement, output: int) -> None:
        self._mark = placement.environment[MARK]
        commands, self._lifeline = os.pipe()
        self._reports, reports = os.pipe()
        os.set_blocking(self._lifeline, False)
        try:
            forking = asyncio.to_thread(self._fork, placement, [commands, reports, output])
            await finish(forking)
        finally:
            os.close(commands)
            os.close(reports)

    def _fork(self, placement: Placement, descriptors: list[int]) -> None:
        """In a thread. What was started is known to `end` even if the start was given up."""
        self.pid, self._exit = self._server.fork(placement.fork(), descriptors)

    def send(self, command: bytes) -> None:
        with suppress(OSError):
            os.write(self._lifeline, command)

    async def reports(self) -> AsyncIterator[bytes]:
        stream = asyncio.StreamReader(limit=_LONGEST)
        pipe, self._reports = os.fdopen(self._reports, "rb"), -1
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), pipe
        )
        try:
            with suppress(ValueError):  # a line too long: not from the supervisor
                async for line in stream:
                    yield line
        finally:
            transport.close()

    async def end(self) -> None:
        _close(self._lifeline)
        if self._exit >= 0:
            if not await _readable(self._exit, END_TIMEOUT_S):
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._exit, signal.SIGKILL)
                await _readable(self._exit, END_TIMEOUT_S)
            await asyncio.to_thread(processes.kill_marked, self._mark)
        _close(self._exit)
        _close(self._reports)
        self._lifeline = self._exit = self._reports = -1


async def _readable(descriptor: int, timeout_s: float) -> bool:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await asyncio.wait_for(ready.wait(), timeout_s)
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(descriptor)
    return True


def _close(descriptor: int) -> None:
    if descriptor >= 0:
        os.close(descriptor)
