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
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import IO, Any

from mle_ideator.errors import SandboxError
from mle_ideator.sandboxes import processes
from mle_ideator.sandboxes.environment import MARK, MARK_LENGTH, OF_ONE_SANDBOX
from mle_ideator.sandboxes.launching import END_TIMEOUT_S, close_descriptor, has_ended
from mle_ideator.sandboxes.placement import PROGRAMS, Placement, own_libraries_only
from mle_ideator.sandboxes.threads import at_once, in_thread
from mle_ideator.waiting import finish

_log = logging.getLogger(__name__)

_READY_TIMEOUT_S = 120.0
_FORK_TIMEOUT_S = 10.0
_LONGEST = 64 * 1024
_ONLY_HERE = {
    "HOME": "/",  # some modules look for one
    MARK: "0" * MARK_LENGTH,  # where forks write theirs
}


class _Kind:
    """The fork server for one environment and list of modules, if it has been started."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.server: ForkServer | None = None
        self.why_not = ""
        """Why there is to be none: it took seconds to find out."""


_kinds: defaultdict[tuple[object, ...], _Kind] = defaultdict(_Kind)
_processes: set[subprocess.Popen[bytes]] = set()


def fork_server(environment: Mapping[str, str], modules: tuple[str, ...]) -> ForkServer:
    """The one for these; blocks while it imports. Raises `SandboxError` if it can not be had."""
    kind = _kind(environment, modules)
    with kind.lock:
        if kind.why_not:
            raise SandboxError(kind.why_not)
        if kind.server is None or not kind.server.alive:
            if kind.server is not None:
                kind.server.close()  # its spare waits for requests as long as somebody could ask
            try:
                kind.server = ForkServer(_common(environment), modules)
            except (SandboxError, OSError) as error:
                kind.why_not = str(error)
                raise SandboxError(kind.why_not) from error
        return kind.server


def anticipate(environment: Mapping[str, str], modules: tuple[str, ...]) -> None:
    """Start the one for these in the background; `fork_server` waits for it."""

    def start() -> None:
        with suppress(SandboxError):  # told to who asks for it
            fork_server(environment, modules)

    threading.Thread(target=start, daemon=True).start()


def do_without(environment: Mapping[str, str], modules: tuple[str, ...], why: str) -> None:
    """A fork did not work where a new process did: none is tried again in this process."""
    _kind(environment, modules).why_not = why


def close_all() -> None:
    """End every fork server of this process, also those that still import; sandboxes stay."""
    servers = [kind.server for kind in list(_kinds.values()) if kind.server is not None]
    _kinds.clear()
    for server in servers:
        server.close()
    for process in list(_processes):
        process.kill()


atexit.register(close_all)


def _kind(environment: Mapping[str, str], modules: tuple[str, ...]) -> _Kind:
    return _kinds[os.getpid(), tuple(sorted(_common(environment).items())), modules]


def _common(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in OF_ONE_SANDBOX}


class ForkServer:
    """A running one. Its methods block for milliseconds."""

    def __init__(self, environment: Mapping[str, str], modules: tuple[str, ...]) -> None:
        self._turn = threading.Lock()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs, tempfile.TemporaryFile() as said:
                self._start(environment, modules, theirs, said)
        except BaseException:
            self._socket.close()
            raise

    def _start(
        self,
        environment: Mapping[str, str],
        modules: tuple[str, ...],
        theirs: socket.socket,
        said: IO[bytes],
    ) -> None:
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
        _processes.add(self._process)
        try:
            self._wait_until_ready()
        except BaseException as error:
            self.close()
            if not isinstance(error, SandboxError):
                raise
            said.seek(0)
            wrote = said.read().decode(errors="replace").strip()[-500:]
            raise SandboxError(f"{error}{wrote and f'; it wrote: {wrote}'}") from None

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def fork(self, spec: Mapping[str, Any], descriptors: list[int]) -> tuple[int, int]:
        """A supervisor with these as lifeline, reports and output: its pid, and a pidfd of it."""
        request = os.memfd_create("request")  # read in the fork only: siblings share memory
        try:
            os.write(request, json.dumps(spec).encode())
            with self._turn:
                self._socket.settimeout(_FORK_TIMEOUT_S)
                socket.send_fds(self._socket, [b"fork"], [request, *descriptors])
                said, received, _, _ = socket.recv_fds(self._socket, _LONGEST, 1)
        except OSError as error:
            self.close()
            raise SandboxError(f"the fork server does not answer: {error}") from error
        finally:
            os.close(request)
        if not said or not received:
            raise SandboxError("the fork server has ended, or could not fork")
        return int(said), received[0]

    def close(self) -> None:
        self._socket.close()
        self._process.kill()
        self._process.wait()
        _processes.discard(self._process)

    def _wait_until_ready(self) -> None:
        self._socket.settimeout(_READY_TIMEOUT_S)
        try:
            said = self._socket.recv(_LONGEST)
        except OSError as error:
            raise SandboxError("the modules were not imported in time") from error
        if not said:
            raise SandboxError("a module ended the process that imported it")
        try:
            told = json.loads(said)
        except ValueError as error:
            raise SandboxError("a module has written to what it is heard by") from error
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
            forking = in_thread(self._fork, placement, [commands, reports, output])
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
        lifeline, process, reports = self._lifeline, self._exit, self._reports
        self._lifeline = self._exit = self._reports = -1  # their numbers may be others' soon
        killed = process >= 0 and has_ended(process)
        close_descriptor(lifeline)
        close_descriptor(reports)
        try:
            if process >= 0 and not await _readable(process, END_TIMEOUT_S):
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(process, signal.SIGKILL)
                killed = await _readable(process, END_TIMEOUT_S)
        finally:
            close_descriptor(process)
        if killed:  # then it has left something
            await at_once(processes.kill_marked, self._mark)


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
