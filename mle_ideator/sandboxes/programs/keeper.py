"""The process inside the walls of which all that runs agent code is a fork. It runs none itself.

    python start.py keeper SPEC     commands on descriptor 6, reports on 3, output on 1 and 2

Commands, a JSON object a line, come from the runtime: `{"do": "kernel", ...}` starts a kernel,
`{"do": "signal", "signal": N}` sends that kernel a signal, `{"do": "end"}` ends it and all that it
left behind, but for background jobs, `{"do": "protect"}` asks for these, `{"do": "clear"}` ends all
and, in a container, empties what could be written, the workspace apart. Each but a signal has a
number `id`, which its answer begins with. Reports: `ready`, `exit CODE`, `job NUMBER CODE`, and
the answers `kernel ID PID`, `ended ID`, `protected ID PID ...`, `cleared ID CODE`.
Agent code asks for scripts and jobs at a socket in its folder. It can not look into the
keeper (which is not *dumpable*), but may end it: then the runtime starts everything anew.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import select
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import calls, leftovers, preloading, system, trees
from .requests import Requests

if TYPE_CHECKING:
    from .kernel import Prepared  # takes long to import, and a warm process has it

_LONGEST = 64 * 1024
_FORKING = ("kernel", "clear")
Task = Callable[[], Any]


def main(arguments: list[str]) -> Task | int:
    """Started as a program: what forks are to have is imported here, after the first kernel."""
    spec = json.loads(arguments[0])
    from .kernel import Prepared

    keeper = Keeper(spec, system.KEEPERS_COMMANDS, system.KEEPERS_REPORTS, Prepared())
    return keeper.run(list(spec["preload"]))


def keep(
    spec: dict[str, Any], commands: int, reports: int, prepared: Prepared, to_preload: list[str]
) -> Task | int:
    """In a fork of a warm process, which has yet to import some modules if it is the first."""
    return Keeper(spec, commands, reports, prepared).run(to_preload)


class Keeper:
    """Serves until its commands end."""

    def __init__(
        self, spec: dict[str, Any], commands: int, reports: int, prepared: Prepared
    ) -> None:
        self._spec, self._prepared = spec, prepared
        self._commands, self._reports = commands, reports
        self._kernel = 0
        system.no_input()
        for descriptor in (commands, reports):
            os.set_inheritable(descriptor, False)
        system.prctl(system.PR_SET_DUMPABLE, 0)
        system.prctl(system.PR_SET_CHILD_SUBREAPER, 1)
        if spec["walled"]:
            calls.refuse_calls()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self._wakeup = system.wake_on_child()
        self._requests = Requests(spec["folder"], self._job_ended)
        self._unread = b""

    def run(self, to_preload: list[str]) -> Task | int:
        gc.freeze()
        system.tell(self._reports, "ready")
        while True:
            task = self._serve(0 if to_preload and self._kernel else None)
            if task is not None:
                return task
            if to_preload and self._kernel:
                self._preload(to_preload.pop(0))
                if not to_preload:
                    gc.collect()
                    gc.freeze()

    def _preload(self, module: str) -> None:
        """Takes up to seconds. Ends are reported meanwhile, and what needs no fork is done."""
        flags = fcntl.fcntl(self._commands, fcntl.F_GETFL)
        fcntl.fcntl(self._commands, fcntl.F_SETOWN, os.getpid())
        on_child = signal.signal(signal.SIGCHLD, lambda *_: self._note_ended(system.reap()))
        signal.signal(signal.SIGIO, lambda *_: self._serve_without_fork())
        fcntl.fcntl(self._commands, fcntl.F_SETFL, flags | os.O_ASYNC)
        try:
            self._serve_without_fork()  # what came before
            preloading.preload([module])
        finally:
            fcntl.fcntl(self._commands, fcntl.F_SETFL, flags)
            signal.signal(signal.SIGIO, signal.SIG_IGN)
            signal.signal(signal.SIGCHLD, on_child)

    # -------------------------------------------------------------------------- one turn

    def _serve(self, timeout_ms: int | None) -> Task | int | None:
        """Wait for something and do it; in a fork, returns what that is to do."""
        if b"\n" in self._unread:
            return self._obey(b"")
        poll = select.poll()
        for descriptor in (self._commands, self._wakeup, *self._requests.descriptors()):
            poll.register(descriptor, select.POLLIN)
        ready = [descriptor for descriptor, _ in poll.poll(timeout_ms)]
        if self._wakeup in ready:
            os.read(self._wakeup, 4096)
            self._note_ended(system.reap())
        if self._commands in ready:
            data = os.read(self._commands, _LONGEST)
            if not data:
                return 0
            return self._obey(data)
        for descriptor in ready:
            fork = self._requests.answer(descriptor)
            if fork is not None:
                return self._become(fork)
        return None

    def _serve_without_fork(self) -> None:
        if select.select([self._commands], [], [], 0)[0]:
            self._obey(os.read(self._commands, _LONGEST), may_fork=False)

    def _obey(self, data: bytes, may_fork: bool = True) -> Task | None:
        """Do what is said in full lines, in their order; without a fork, up to the first that needs
        one."""
        self._unread += data
        while b"\n" in self._unread:
            line, _, rest = self._unread.partition(b"\n")
            command = json.loads(line)
            if command["do"] in _FORKING and not may_fork:
                return None
            self._unread = rest
            if command["do"] == "kernel":
                if task := self._start_kernel(command):
                    return task
            elif command["do"] == "signal":
                system.send_signal([self._kernel] if self._kernel else [], command["signal"])
            elif command["do"] == "protect":
                roots = " ".join(map(str, sorted(self._requests.protected())))
                self._answer("protected", command, roots)
            elif command["do"] == "end":
                self._note_ended(trees.end_all(self._requests.protected))
                self._answer("ended", command)
            elif command["do"] == "clear":
                self._answer("cleared", command, self._clear())
        return None

    def _start_kernel(self, command: dict[str, Any]) -> Task | None:
        self._kernel = os.fork()
        if self._kernel == 0:
            system.prctl(system.PR_SET_PDEATHSIG, signal.SIGKILL)
            return self._become(lambda: self._run_kernel(command))
        self._answer("kernel", command, self._kernel)
        return None

    def _answer(self, word: str, command: dict[str, Any], told: object = "") -> None:
        system.tell(self._reports, f"{word} {command['id']} {told}".rstrip())

    def _run_kernel(self, command: dict[str, Any]) -> int:
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        os.setpgid(0, 0)  # an interrupt reaches what the cell has started, too
        os.mkdir(command["folder"], 0o700)  # noqa: PTH102 pathlib takes long to import
        sys.argv = [sys.executable]
        workspace = self._spec["workspace"]
        os.chdir(workspace)  # agent code may have replaced the one that the keeper was started in
        return self._prepared.run(command["connection"], command["folder"], workspace)

    def _job_ended(self, number: int, code: int) -> None:
        system.tell(self._reports, f"job {number} {code}")

    def _clear(self) -> int:
        """An exit code."""
        self._note_ended(trees.end_all())
        self._requests.forget()
        child = os.fork()
        if child == 0:
            try:
                os._exit(leftovers.clear(self._spec["folder"]))
            finally:
                os._exit(1)  # it must never become a second keeper
        _, status = os.waitpid(child, 0)
        self._requests = Requests(self._spec["folder"], self._job_ended)
        return os.waitstatus_to_exitcode(status)

    def _note_ended(self, ended: list[tuple[int, int]]) -> None:
        for pid, code in ended:
            if pid == self._kernel:
                self._kernel = 0
                system.tell(self._reports, f"exit {code}")
            else:
                self._requests.note_ended(pid, code)

    def _become(self, task: Task) -> Task:
        """In a fork: nothing of the keeper's is left but what it has imported."""
        self._requests.forget()
        for descriptor in (self._commands, self._reports, self._wakeup):
            os.close(descriptor)
        system.usual_signals()
        system.prctl(system.PR_SET_DUMPABLE, 1)
        system.die_before_the_runtime()
        preloading.freshen()
        return task
