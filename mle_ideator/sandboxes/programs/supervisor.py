"""The ancestor of all that runs in a sandbox: outside its walls, it runs no agent code itself.

    python -I -S start.py supervisor SPEC

Standard input is its lifeline: what comes is handed on to the keeper, and when it closes (the
sandbox ends, or the runtime was killed), everything below is killed until nothing is left. As the
first process of a container it ends that, too. Being a *subreaper*, it stays the ancestor of
processes that left their session or lost their parent. Standard output carries reports, a line
each, its own `gone CODE` (the keeper's end; negative: the signal) and the keeper's. Standard error
becomes the output of whatever it starts.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import system, trees

LIFELINE, REPORTS, OUTPUT = 0, 1, 2
_CLEAR = 10
"""Descriptors from here on are in nobody's way."""
Task = Callable[[], Any]


@dataclass(frozen=True)
class Family:
    """A supervisor and its keeper, as each of the two sees it after the fork."""

    keeper: int
    """Its process; 0 in the keeper itself."""
    commands: int
    """Where the supervisor writes and the keeper reads."""
    wakeup: int
    """Can be read in the supervisor whenever a child has ended."""


def main(arguments: list[str]) -> Task | int:
    """Started as a program: the keeper is another program, at the end of a command."""
    spec = json.loads(arguments[0])
    family = fork_keeper()
    if family.keeper:
        return supervise(family)
    task: Task = confined(spec, lambda: _become(spec, family.commands))
    return task


def fork_keeper() -> Family:
    """Returns twice: here, and in the child."""
    system.prctl(system.PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    wakeup = system.wake_on_child()
    commands, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writing)
        os.close(wakeup)
        return Family(0, commands, -1)
    os.close(commands)
    os.set_blocking(writing, False)
    return Family(child, writing, wakeup)


def supervise(family: Family) -> int:
    """Serve until the lifeline closes, then end all."""
    if os.getpid() == 1:  # agent code in a container sees it, and runs as the same user
        system.prctl(system.PR_SET_DUMPABLE, 0)
    _serve(family)
    if os.getpid() != 1:  # else the Linux kernel does that at once
        trees.end_all()
    return 0


def confined(spec: dict[str, Any], start: Callable[[], Task | None]) -> Any:
    """In the child: limits, then whatever it is to be. `start` returns what it is to do, or becomes
    another program."""
    try:
        system.usual_signals()
        os.setsid()
        system.leave_keys_behind()
        system.prctl(system.PR_SET_PDEATHSIG, signal.SIGKILL)
        if spec["no_new_privileges"]:
            system.prctl(system.PR_SET_NO_NEW_PRIVS, 1)
        system.join(spec["groups"])
        system.set_limits(spec["rlimits"])
        return start()
    except BaseException as error:
        os.write(OUTPUT, f"{type(error).__name__}: {error}\n".encode())
        os._exit(127)


def _become(spec: dict[str, Any], commands: int) -> None:
    """The keeper as a program: no input, output where all goes."""
    given = {system.KEEPERS_COMMANDS: commands, system.KEEPERS_REPORTS: REPORTS}
    moved = {number: fcntl.fcntl(here, fcntl.F_DUPFD, _CLEAR) for number, here in given.items()}
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, here in {0: nothing, 1: OUTPUT, **moved}.items():  # `moved` may cover `nothing`
        os.dup2(here, number)
    os.closerange(system.KEEPERS_COMMANDS + 1, os.sysconf("SC_OPEN_MAX"))
    command = spec["command"]
    try:
        os.execvp(command[0], command)  # noqa: S606 that is what it is for
    except OSError as error:
        raise OSError(f"{command[0]}: {error}") from error


def _serve(family: Family) -> None:
    """Hand commands on and reap until the lifeline closes."""
    while True:
        ready, _, _ = select.select([LIFELINE, family.wakeup], [], [])
        if family.wakeup in ready:
            os.read(family.wakeup, 4096)
            for pid, code in system.reap():
                if pid == family.keeper:
                    system.tell(REPORTS, f"gone {code}")
        if LIFELINE in ready:
            said = os.read(LIFELINE, 4096)
            if not said:
                return
            with contextlib.suppress(OSError):  # it is gone, or does not listen
                os.write(family.commands, said)
