"""`job`: background jobs, as agent code calls it. They outlive the cell, not the session.

job start COMMAND ...              prints the job's number and where its output goes
job list                           all jobs, with how long they run or how they ended
job tail NUMBER [LINES]            the last lines of its output (20)
job wait NUMBER [SECONDS]          until it has ended, or the time is up (exit code 124)
job kill NUMBER                    end it and all that it has started
"""

from __future__ import annotations

import io
import json
import os
import re
import signal
import socket
import sys
import time
from typing import Any

from .client import ADDRESS, LONGEST

_PATIENCE_S = 2.0
_ANSWER_S = 10.0
_SHORTEST_S = 0.01
_TIME_IS_UP = 124
_WRONG_USE = 2
_MOST_READ = 1 << 20
_MOST_TRIES, _PAUSE_S = 100, 0.05
_OF_A_SHELL = re.compile(r"[\s|&;<>()$`]")


class _Refused(Exception):
    """What the user is told, and the exit code."""

    def __init__(self, why: str, code: int = 1) -> None:
        super().__init__(why)
        self.code = code


def main(words: list[str]) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a command may have any bytes
    try:
        return _obey(words)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # else Python complains at its end
        return 1
    except _Refused as refused:
        print(f"job: {refused}", file=sys.stderr)
        return refused.code


def _obey(words: list[str]) -> int:
    match words:
        case ["start", *command] if command:
            return _start(command)
        case ["list"]:
            jobs = _ask({"do": "list"})
            print("\n".join(map(_line, jobs)) or "no job was started")
            return 0
        case ["tail", number]:
            return _tail(_count(number), 20)
        case ["tail", number, lines]:
            return _tail(_count(number), _count(lines))
        case ["wait", number]:
            return _wait(_count(number), None)
        case ["wait", number, seconds]:
            return _wait(_count(number), _duration(seconds))
        case ["kill", number]:
            return _kill(_count(number))
        case [] | ["help" | "-h" | "--help"]:
            print((__doc__ or "").strip())
            return 0 if words else _WRONG_USE
    wrong = " ".join(words)
    raise _Refused(f"`job {wrong}` is not understood\n\n{(__doc__ or '').strip()}", _WRONG_USE)


def _count(word: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", word):
        raise _Refused(f"a number is needed in place of {word!r}", _WRONG_USE)
    return int(word)


def _duration(word: str) -> float:
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]*)?s?", word):
        raise _Refused(f"seconds are needed in place of {word!r}", _WRONG_USE)
    return float(word.rstrip("s"))


def _start(command: list[str]) -> int:
    if len(command) == 1 and _OF_A_SHELL.search(command[0]):  # a whole line, in quotes
        command = ["bash", "-c", *command]
    try:
        cwd = os.getcwd()  # noqa: PTH109 pathlib takes long to import
    except OSError as error:
        raise _Refused(f"this folder is not there any more ({error.strerror})") from None
    job = _ask({"do": "start", "command": command, "cwd": cwd, "environment": dict(os.environ)})
    if "refused" in job:
        raise _Refused(job["refused"])
    print(f"job {job['job']} started; its output goes to {job['log']}")
    return 0


def _tail(number: int, lines: int) -> int:
    job = _known(number)
    try:
        with open(job["log"], "rb") as log:  # noqa: PTH123
            log.seek(max(0, os.fstat(log.fileno()).st_size - _MOST_READ))
            text = log.read(_MOST_READ).decode(errors="replace")
    except OSError as error:
        text = f"[its output can not be read: {error.strerror}]"
    print(_line(job))
    for line in text.splitlines()[-lines:] if lines else []:
        print(line)
    return 0


def _wait(number: int, seconds: float | None) -> int:
    _known(number)
    job = _answer({"do": "wait", "job": number}, seconds)
    if job is None:
        print(f"job {number} still runs after {seconds:g} s")
        return _TIME_IS_UP
    print(_line(job))
    code: int = job["code"]
    return code if code >= 0 else 128 - code


def _kill(number: int) -> int:
    _known(number)
    for how in (signal.SIGTERM, signal.SIGKILL):
        job = _answer({"do": "kill", "job": number, "signal": int(how)}, _PATIENCE_S)
        if job is not None:
            print(_line(job))
            return 0
    raise _Refused(f"job {number} does not end")


def _known(number: int) -> Any:
    try:
        return _ask({"do": "show", "job": number})
    except _Refused:
        known = ", ".join(str(job["job"]) for job in _ask({"do": "list"})) or "none"
        raise _Refused(f"there is no job {number}; known are: {known}") from None


def _line(job: dict[str, Any]) -> str:
    code, seconds = job["code"], f"{job['seconds']:.1f} s"
    if code is None:
        state = f"running for {seconds}"
    elif code >= 0:
        state = f"ended after {seconds} with exit code {code}"
    else:
        state = f"ended after {seconds} by signal {-code}"
    return f"job {job['job']}: {state}: {job['command']}"


def _ask(request: dict[str, Any]) -> Any:
    answer = _answer(request, _ANSWER_S)
    if answer is None:
        raise _Refused("the keeper of this sandbox does not answer; is it stopped?")
    return answer


def _answer(request: dict[str, Any], seconds: float | None) -> Any:
    """The keeper's; `None` if the time is up."""
    said = json.dumps(request).encode()
    if len(said) > LONGEST:
        raise _Refused("the command and its environment are too long; put it into a script")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as keeper:
        try:
            keeper.settimeout(_ANSWER_S)
            _connect(keeper, os.environ[ADDRESS])
            keeper.send(said)
            keeper.settimeout(None if seconds is None else max(seconds, _SHORTEST_S))
            answer = keeper.recv(LONGEST)
        except TimeoutError:
            return None
        except KeyError:
            raise _Refused(f"the variable {ADDRESS} is not set") from None
        except OSError as error:
            raise _Refused(f"the keeper of this sandbox can not be asked: {error}") from None
    if not answer:
        raise _Refused("the keeper of this sandbox gave no answer")
    return json.loads(answer)


def _connect(keeper: socket.socket, address: str) -> None:
    """With a time limit, a full queue is an error at once."""
    for _ in range(_MOST_TRIES):
        try:
            return keeper.connect(address)
        except BlockingIOError:
            time.sleep(_PAUSE_S)
    raise TimeoutError
