"""A clean run of a script in a fork that has the heavy modules already: what `python FILE` does.

It has to be what a new process would be. Where that is not certain, `why_cold` says so, and the
client starts a new Python instead. What differs is what no honest script depends on:

- modules that it has not imported are in `sys.modules`, and what libraries say while they are
  imported was said before; the filters of warnings that they set then are there from the start,
  and the variables of the environment that they set then are not set;
- it is no descendant of the shell, and leads a process group of its own: `os.getppid`, `os.getpgrp`
  and `os.getsid` differ, `os.setsid` works in its children only, and a signal that is sent to it
  reaches what it has started, too; being stopped (SIGSTOP) does not;
- `inspect.stack()` and `traceback.print_stack()` show four frames below its own, and recursion ends
  four frames earlier; `sys.flags.safe_path` and `no_user_site` are those of the sandbox;
- memory is shared with others until it is written to; what it holds at its start counts as held.
"""

from __future__ import annotations

import atexit
import builtins
import gc
import io
import os
import signal
import stat
import sys
import threading
from _thread import _count as other_threads
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from types import ModuleType, TracebackType
from typing import NoReturn
from weakref import ref

from . import client, preloading, system

_READ_AT_START = (
    *("LD_", "PYTHON", "OMP_", "GOMP_", "KMP_", "OPENBLAS_", "MKL_", "BLIS_", "VECLIB_"),
    *("NUMEXPR_", "NUMBA_", "MALLOC_", "GLIBC_", "ARROW_", "MIMALLOC_", "LC_", "LANG", "CUDA_"),
)
"""By compiled code and by Python itself; what modules read is noted as they do."""
_EVERYONES_OWN = {"HOME", "PATH", "TMPDIR", "PWD", "OLDPWD", "SHLVL", "_", "MLE_IDEATOR_SANDBOX"}
"""Variables that differ between sandboxes or commands anyway."""
_NOT_FLUSHED = 120
"""Python's exit code if its output could not be written."""


@dataclass(frozen=True)
class Script:
    """What the client was called with, and what it had inherited."""

    umask: int
    nice: int
    cpus: str
    limits: str
    ignored: list[int]
    blocked: list[int]
    cwd: str
    arguments: list[str]
    environment: dict[str, str]

    @classmethod
    def decoded(cls, request: bytes) -> Script:
        """From the client's message. Raises `ValueError`."""
        _, umask, nice, cpus, limits, *rest = map(os.fsdecode, request.split(b"\0"))
        ignored, blocked, cwd, count, *rest = rest
        arguments, variables = rest[: int(count)], rest[int(count) :]
        return cls(
            int(umask),
            int(nice),
            cpus,
            limits,
            [int(number) for number in ignored.split(",") if number],
            [int(number) for number in blocked.split(",") if number],
            cwd,
            arguments,
            {name: value for name, _, value in (word.partition("=") for word in variables)},
        )

    @property
    def path(self) -> str:
        return os.path.join(self.cwd, self.arguments[0])  # noqa: PTH118

    @property
    def folder(self) -> str:
        return os.path.dirname(os.path.realpath(self.path))  # noqa: PTH120

    def why_cold(self) -> str | None:
        """Why a fork might differ from a new process, or `None`."""
        try:
            return self._special() or self._changed_surroundings() or self._other_libraries()
        except OSError as error:
            return str(error)

    def run(self) -> NoReturn:
        """In the fork, with its standard descriptors in place."""
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        os.chdir(self.cwd)
        os.umask(self.umask)
        with suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, self.nice)
        for number in self.ignored:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, self.blocked)
        os.environ.clear()
        os.environ.update(self.environment)
        sys.argv = list(self.arguments)
        sys.orig_argv = [sys.executable, *self.arguments]
        sys.path.insert(0, self.folder)
        sys.stdin, sys.stdout, sys.stderr = (_stream(number) for number in range(3))
        sys.__stdin__, sys.__stdout__, sys.__stderr__ = (  # type: ignore[misc]
            *(sys.stdin, sys.stdout, sys.stderr),
        )
        preloading.settle()
        with suppress(OSError, ValueError):
            system.show_command(["python", *self.arguments])
        _run_as_main(self.path)

    def _special(self) -> str | None:
        """What Python does not simply read and run: a folder, an archive, compiled code."""
        if not self.path.endswith(".py") or not stat.S_ISREG(os.stat(self.path).st_mode):  # noqa: PTH116
            return "it is no file with Python code"
        return None

    def _changed_surroundings(self) -> str | None:
        if self.limits != client.limits() or self.cpus != client.processors():
            return "limits or processors are not those of the sandbox"
        read = preloading.variables_read - _EVERYONES_OWN
        for name in {*self.environment, *os.environ}:
            if not name:
                return "a variable has no name"
            changed = self.environment.get(name) != os.environ.get(name)
            if changed and (name in read or name.startswith(_READ_AT_START)):
                return f"{name} is not what it was when modules were imported"
        return None

    def _other_libraries(self) -> str | None:
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        own = (self.environment.get("HOME", "/"), ".local", "lib", version, "site-packages")
        if os.path.isdir("/".join(own)) or preloading.libraries_changed():  # noqa: PTH112
            return "packages were installed"
        known = {name.partition(".")[0] for name in sys.modules} | preloading.not_found
        for entry in os.listdir(self.folder):  # noqa: PTH208
            if entry.partition(".")[0] in known:
                return f"{entry} would be imported in place of a library"
        return None


def _stream(number: int) -> io.TextIOWrapper:
    """A standard stream as Python makes it: whether it can seek is asked of the new descriptor."""
    old = (sys.__stdin__, sys.__stdout__, sys.__stderr__)[number]
    assert old is not None  # noqa: S101 the keeper has all three
    name, mode = (("<stdin>", "r"), ("<stdout>", "w"), ("<stderr>", "w"))[number]
    at_once = old.write_through
    buffering = 0 if at_once and mode == "w" else -1
    buffer = open(number, f"{mode}b", buffering, closefd=False)  # noqa: SIM115
    raw = getattr(buffer, "raw", buffer)
    by_line = not at_once and (number == 2 or raw.isatty())
    stream = io.TextIOWrapper(buffer, old.encoding, old.errors, "\n", by_line, at_once)
    raw.name = name  # type: ignore[misc]
    stream.mode = mode  # type: ignore[misc]
    return stream


# ------------------------------------------------------------------------------ the run


def _run_as_main(path: str) -> NoReturn:
    sys.modules["__main__"] = main = ModuleType("__main__")
    main.__dict__.update(
        __annotations__={},
        __builtins__=builtins,
        __file__=path,
        __cached__=None,
        __loader__=SourceFileLoader("__main__", path),
    )
    del main
    before = set(sys.modules) - {"__main__"}
    result = _run(path)
    for name in ("__file__", "__cached__"):  # Python does that, too
        sys.modules["__main__"].__dict__.pop(name, None)
    _end(result, before)


def _run(path: str) -> int:
    """Its exit code (negative: the signal)."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            code = compile(file.read(), path, "exec", dont_inherit=True)
    except Exception:  # Python says best what is wrong with it
        os.execv(sys.executable, sys.orig_argv)  # noqa: S606
    try:
        exec(code, sys.modules["__main__"].__dict__)  # noqa: S102 that is what it is for
        return 0
    except SystemExit as end:
        return _exit_code(end)
    except BaseException as error:
        uncaught = error
    return _report(uncaught.with_traceback(_own(uncaught.__traceback__)))


def _own(frames: TracebackType | None) -> TracebackType | None:
    """Without the frames of this module."""
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    return frames


def _report(error: BaseException) -> int:
    """As Python does; the exit code, which the script's own hook may choose."""
    frames = error.__traceback__
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, frames
    try:
        sys.excepthook(type(error), error, frames)
    except SystemExit as end:
        return _exit_code(end)
    except BaseException as second:
        print("Error in sys.excepthook:", file=sys.stderr)
        own = second.with_traceback(_own(second.__traceback__))
        sys.__excepthook__(type(own), own, own.__traceback__)
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(type(error), error, frames)
    return -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1


def _exit_code(end: SystemExit) -> int:
    if end.code is None or isinstance(end.code, int):
        return int(end.code or 0) & 0xFF
    if sys.stderr is not None:
        print(end.code, file=sys.stderr)
    return 1


# ------------------------------------------------------------------------------ the end


def _end(code: int, before: set[str]) -> NoReturn:
    """What Python does at its end, but for taking apart what was imported before the fork.

    That would copy most of the memory it shares, and take longer than most scripts.
    """
    try:
        threading._shutdown()  # type: ignore[attr-defined]  # waits for those that are no daemons
    except BaseException as error:
        print(f"Exception ignored in: {threading!r}", file=sys.stderr)
        sys.__excepthook__(type(error), error, _own(error.__traceback__))
    atexit._run_exitfuncs()
    code = code or _flushed()
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    _take_apart(before)
    code = code or _flushed()
    system.libc.fflush(None)  # of compiled code
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _flushed() -> int:
    """An exit code: 0 if all that was printed is written."""
    code = 0
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except Exception as error:
            code = _NOT_FLUSHED
            with suppress(Exception):
                if stream is sys.stdout:
                    print(f"Exception ignored in: {stream!r}", file=sys.stderr)
                    sys.__excepthook__(type(error), error, None)
    return code


def _take_apart(before: set[str]) -> None:
    """Forget the new modules, then empty those that something still holds.

    So files that were left open are written, and `__del__` finds what it needs where it can.
    """
    if gc.isenabled():
        gc.collect()  # also puts what is left into an order in which files can be closed
    sys.last_type = sys.last_value = sys.last_traceback = None
    new = [(name, ref(module)) for name, module in sys.modules.items() if _is_new(name, before)]
    for name, _ in new:
        del sys.modules[name]
    gc.collect()
    for _, module in [] if other_threads() else reversed(new):  # they may need what is in them
        if (left := module()) is not None:
            _emptied(left.__dict__)
        del left
    gc.collect()


def _is_new(name: str, before: set[str]) -> bool:
    return name not in before and isinstance(sys.modules[name], ModuleType)


def _emptied(names: dict[str, object]) -> None:
    """In Python's own order: what begins with one underscore first."""
    for private in (True, False):
        for name in list(names):
            if name != "__builtins__" and (name[:1] == "_" and name[1:2] != "_") is private:
                names[name] = None
