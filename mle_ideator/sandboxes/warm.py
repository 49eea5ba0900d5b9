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

_IMPORT_TIMEOUT_S = 120.0
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
    """The one for these, which may still import. Raises `SandboxError` if it can not be had."""
    kind = _kind(environment, modules)
    with kind.lock:
        if kind.why_not:
            raise SandboxError(kind.why_not)
        if kind.server is None or not kind.server.alive:
            if kind.server is not None:
                kind.server.close()  # its spare waits for requests as long as somebody could ask
            try:
                kind.server = ForkServer(_common(environment), modules)
            except OSError as error:
                kind.why_not = str(error)
                raise SandboxError(kind.why_not) from error
        return kind.server


def anticipate(environment: Mapping[str, str], modules: tuple[str, ...]) -> None:
    """Let the one for these begin to import."""
    with suppress(SandboxError):  # told to who asks for it
        fork_server(environment, modules)


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
    """A running one. `fork` takes milliseconds, or, while it imports, seconds; only the first who
    asks is not let wait for all imports."""

    def __init__(self, environment: Mapping[str, str], modules: tuple[str, ...]) -> None:
        self._turn = threading.Lock()
        self._imports = True
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 closed by `close`
        try:
            with theirs:
                self._process = _process(environment, modules, theirs.fileno(), self._said)
        except BaseException:
            self._socket.close()
            self._said.close()
            raise
        _processes.add(self._process)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def fork(
        self, spec: Mapping[str, Any], descriptors: list[int], *, whole: bool = False
    ) -> tuple[int, int]:
        """A supervisor with these as lifeline, reports and output: its pid, and a pidfd of it.

        `whole` lets also the first wait for all imports, where it could not make up for them.
        Raises `SandboxError`, also if what was imported can not be forked; then it has ended.
        """
        request = os.memfd_create("request")  # read in the fork only: siblings share memory
        try:
            os.write(request, json.dumps(spec).encode())
            with self._turn:
                self._socket.settimeout(_IMPORT_TIMEOUT_S if self._imports else _FORK_TIMEOUT_S)
                while whole and self._imports:
                    self._note_imports(self._hear()[0])
                with suppress(BrokenPipeError):  # it has ended, and may have said why
                    socket.send_fds(self._socket, [b"fork"], [request, *descriptors])
                return self._answer()
        except (SandboxError, OSError) as error:
            why = [f"there is no fork: {error}", *self._wrote()]
            self.close()
            raise SandboxError("; it wrote: ".join(why)) from error
        finally:
            os.close(request)

    def close(self) -> None:
        self._socket.close()
        self._said.close()
        self._process.kill()
        self._process.wait()
        _processes.discard(self._process)

    def _answer(self) -> tuple[int, int]:
        """To a request; what is said of the imports may come before it."""
        while True:
            said, process = self._hear()
            if process is not None:
                return int(said), process
            self._note_imports(said)

    def _hear(self) -> tuple[bytes, int | None]:
        """The next message, and the descriptor that came with it."""
        try:
            said, received, _, _ = socket.recv_fds(self._socket, _LONGEST, 1)
        except ConnectionResetError:  # what it said before can still be read
            said, received, _, _ = socket.recv_fds(self._socket, _LONGEST, 1)
        if not said:
            ended = "a module ended the process that imported it"
            raise SandboxError(ended if self._imports else "the fork server has ended")
        return said, next(iter(received), None)

    def _note_imports(self, said: bytes) -> None:
        try:
            told = json.loads(said)
        except ValueError as error:
            raise SandboxError("a module has written to what it is heard by") from error
        if told["threads"] > 1:
            raise SandboxError("a module has started threads, which a fork does not have")
        if told["lacking"]:
            _log.warning("could not be imported in advance: %s", "; ".join(told["lacking"]))
        self._imports = False

    def _wrote(self) -> list[str]:
        """The end of it, if it wrote anything."""
        if self._said.closed:
            return []
        self._said.seek(0)
        wrote = self._said.read().decode(errors="replace").strip()
        return [wrote[-500:]] if wrote else []


def _process(
    environment: Mapping[str, str], modules: tuple[str, ...], theirs: int, said: IO[bytes]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [
            # no path: forks show this command to agent code
            *(sys.executable, *own_libraries_only(), "start.py", "fork_server"),
            *modules,
        ],
        stdin=theirs,
        stdout=subprocess.DEVNULL,
        stderr=said,
        env={**environment, **_ONLY_HERE},
        cwd=PROGRAMS,
        start_new_session=True,
    )


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
