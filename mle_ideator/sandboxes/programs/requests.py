"""What agent code asks of the keeper: clean runs of scripts, and background jobs.

One request a connection, in one message: `client` asks for scripts, with three descriptors, `job`
for jobs, in JSON. Whoever may speak here could do all this by other means, so nobody is asked for
rights; what can not be understood is hung up on.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from . import system, trees
from .client import ADDRESS, LONGEST, RUNNING
from .script import Script

_MOST_CONNECTIONS = 200
_LONGEST_QUEUE = 1000
_MOST_JOBS = 100
_KEPT_ENDED_JOBS = 100
_MOST_TRIED = 1000
_SHOWN = 200
"""Characters of a command."""
_CREDENTIALS = "3i"


@dataclass
class Connection:
    """One client, and what runs for it."""

    socket: socket.socket
    client: int
    pid: int = 0
    waits_for: int = 0


@dataclass
class Job:
    """One background job."""

    number: int
    pid: int
    command: list[str]
    log: str
    started: float = field(default_factory=time.monotonic)
    seconds: float | None = None
    code: int | None = None

    def told(self) -> dict[str, Any]:
        seconds = time.monotonic() - self.started if self.seconds is None else self.seconds
        return {
            "job": self.number,
            "command": " ".join(self.command)[:_SHOWN],
            "log": self.log,
            "seconds": round(seconds, 1),
            "code": self.code,
        }


class Requests:
    """The socket, its connections, and the jobs."""

    def __init__(self, folder: str, job_ended: Callable[[int, int], None]) -> None:
        self._job_ended = job_ended
        self._jobs: dict[int, Job] = {}
        self._connections: dict[int, Connection] = {}
        # under a name that agent code could not take before
        self.path = path = os.path.join(folder, f"keeper-{os.urandom(4).hex()}")  # noqa: PTH118
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(path)
        self._listener.listen(_LONGEST_QUEUE)
        self._listener.setblocking(False)
        os.environ[ADDRESS] = path

    def descriptors(self) -> list[int]:
        full = len(self._connections) >= _MOST_CONNECTIONS and self._idle() is None
        return [*([] if full else [self._listener.fileno()]), *self._connections]

    def protected(self) -> set[int]:
        """Running jobs, and the scripts that run for what they have started."""
        return self._with_scripts({job.pid for job in self._jobs.values() if job.code is None})

    def _with_scripts(self, roots: set[int]) -> set[int]:
        """With the scripts that run for clients below: they are no descendants."""
        while roots:
            clients = roots | trees.below(roots)
            scripts = {c.pid for c in self._connections.values() if c.pid and c.client in clients}
            if scripts <= roots:
                break
            roots |= scripts
        return roots

    def answer(self, descriptor: int) -> Callable[[], Any] | None:
        """Do what is asked there; in a fork, returns what that is to do."""
        if descriptor == self._listener.fileno():
            self._accept()
            return None
        connection = self._connections.get(descriptor)
        if connection is None:
            return None
        try:
            said, received, _, _ = socket.recv_fds(connection.socket, LONGEST, 3)
        except OSError:
            said, received = b"", []
        try:
            return self._obey(connection, said, received)
        except Exception:  # whatever was said: nothing ends the keeper
            self._hang_up(connection)
            return None
        finally:
            for number in received:
                os.close(number)

    def note_ended(self, pid: int, code: int) -> None:
        for job in self._jobs.values():
            if job.pid == pid and job.code is None:
                job.code, job.seconds = code, time.monotonic() - job.started
                self._job_ended(job.number, code)
        for connection in list(self._connections.values()):
            if connection.pid == pid:
                connection.pid = 0
                self._answer(connection, f"exit {code}")
            elif connection.waits_for and self._jobs[connection.waits_for].code is not None:
                self._answer(connection, self._jobs[connection.waits_for].told())

    def forget(self) -> None:
        """In a fork, where none of this is its own; or once all has ended."""
        self._listener.close()
        for connection in self._connections.values():
            connection.socket.close()
        self._connections.clear()

    # ------------------------------------------------------------------------- its parts

    def _accept(self) -> None:
        if len(self._connections) >= _MOST_CONNECTIONS and (idle := self._idle()) is not None:
            self._hang_up(idle)
        with contextlib.suppress(OSError):
            accepted, _ = self._listener.accept()
            accepted.setblocking(False)
            peer = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            client = struct.unpack(_CREDENTIALS, peer)[0]
            self._connections[accepted.fileno()] = Connection(accepted, client)

    def _idle(self) -> Connection | None:
        """One that has asked for nothing yet, the oldest."""
        idle = (c for c in self._connections.values() if not c.pid and not c.waits_for)
        return next(idle, None)

    def _obey(
        self, connection: Connection, said: bytes, received: list[int]
    ) -> Callable[[], Any] | None:
        word, _, rest = said.partition(b"\0")
        if word == b"signal" and connection.pid:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(connection.pid, signal.Signals(int(rest)))
            return None
        if connection.pid or connection.waits_for:
            raise ValueError
        if word == b"script":
            return self._run_script(connection, Script.decoded(said), received)
        request = json.loads(said)
        match request["do"]:
            case "start":
                return self._start_job(connection, request)
            case "list":
                self._answer(connection, [job.told() for job in self._jobs.values()])
            case "wait" if self._jobs[request["job"]].code is None:
                connection.waits_for = request["job"]
            case "kill" if self._jobs[request["job"]].code is None:
                roots = self._with_scripts({self._jobs[request["job"]].pid})
                system.send_signal(roots | trees.below(roots), signal.Signals(request["signal"]))
                connection.waits_for = request["job"]
            case "wait" | "kill" | "show":
                self._answer(connection, self._jobs[request["job"]].told())
            case _:
                raise ValueError
        return None

    def _run_script(
        self, connection: Connection, script: Script, received: list[int]
    ) -> Callable[[], Any] | None:
        if reason := script.why_cold():
            self._answer(connection, f"cold {reason}")
            return None
        standard = tuple(zip(received, (0, 1, 2), strict=True))
        connection.socket.send(RUNNING)
        try:
            connection.pid = os.fork()
        except OSError as error:
            self._answer(connection, f"cold {error}")
            return None
        if connection.pid:
            with contextlib.suppress(OSError):
                os.setpgid(connection.pid, connection.pid)  # a signal may come at once
            return None
        try:
            os.setpgid(0, 0)
            for descriptor, number in standard:
                os.dup2(descriptor, number)
        except BaseException:
            os._exit(127)  # it must never become a second keeper
        return script.run

    def _start_job(
        self, connection: Connection, request: dict[str, Any]
    ) -> Callable[[], Any] | None:
        command = [str(word) for word in request["command"]]
        cwd, given = str(request["cwd"]), request["environment"].items()
        environment = {str(name): str(value) for name, value in given}
        if not command or sum(job.code is None for job in self._jobs.values()) >= _MOST_JOBS:
            why = f"{_MOST_JOBS} jobs are running" if command else "there is no command"
            self._answer(connection, {"refused": why})
            return None
        try:
            number, log, written = _new_log(max(self._jobs, default=0) + 1)
        except OSError as error:
            self._answer(connection, {"refused": f"no file for its output: {error}"})
            return None
        try:
            pid = os.fork()
        except OSError as error:
            os.close(written)
            self._answer(connection, {"refused": f"no process can be started: {error}"})
            return None
        if pid == 0:
            return lambda: _become_job(command, environment, cwd, written)
        os.close(written)
        self._jobs[number] = Job(number, pid, command, log)
        self._answer(connection, self._jobs[number].told())
        self._forget_old_jobs()
        return None

    def _forget_old_jobs(self) -> None:
        ended = [number for number, job in self._jobs.items() if job.code is not None]
        for number in ended[:-_KEPT_ENDED_JOBS]:
            del self._jobs[number]

    def _answer(self, connection: Connection, answer: Any) -> None:
        """Say it and hang up."""
        text = answer if isinstance(answer, str) else json.dumps(answer)
        with contextlib.suppress(OSError):
            connection.socket.send(text.encode())
        self._hang_up(connection)

    def _hang_up(self, connection: Connection) -> None:
        if connection.pid:  # its client is gone, and what runs for it goes, too
            with contextlib.suppress(OSError):
                os.killpg(connection.pid, signal.SIGKILL)
        self._connections.pop(connection.socket.fileno(), None)
        connection.socket.close()


def _new_log(number: int) -> tuple[int, str, int]:
    """The first number from this one on that has no file yet, the file, and its descriptor."""
    folder = os.path.join(os.environ["HOME"], "jobs")  # noqa: PTH118
    os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
    for tried in range(number, number + _MOST_TRIED):
        log = os.path.join(folder, f"{tried}.log")  # noqa: PTH118
        with contextlib.suppress(FileExistsError):
            return tried, log, os.open(log, flags, 0o600)
    raise FileExistsError(f"{log} and those before it exist")


def _become_job(
    command: list[str], environment: Mapping[str, str], cwd: str, written: int
) -> NoReturn:
    """In the fork: a session of its own, its output in a file, and the command."""
    try:
        os.setsid()
        os.dup2(written, 1)
        os.dup2(written, 2)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, others do not
            signal.signal(number, signal.SIG_DFL)
        os.chdir(cwd)
        os.execvpe(command[0], command, environment)  # noqa: S606 that is what it is for
    except Exception as error:
        os.write(2, f"{command[0]}: {error}\n".encode(errors="replace"))
    finally:
        os._exit(127)
