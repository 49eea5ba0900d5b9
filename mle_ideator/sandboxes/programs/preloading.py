"""Modules imported before anything is forked, and what a fork must not share with its siblings."""

from __future__ import annotations

import io
import os
import site
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, suppress
from importlib import import_module
from typing import Any

from . import system

_LOOKS, _PAUSE_S = 50, 0.01
_MEANWHILE = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""Variables for the time of an import: pyarrow's allocator must not start its thread."""
variables_read: set[str] = set()
"""Names of environment variables that the modules asked for when they were imported."""
not_found: set[str] = set()
"""Names of modules that they looked for in vain."""
_preloaded: set[str] = set()
"""Names of the packages that were imported here."""
_libraries: dict[str, int] = {}
"""When the contents of each folder on the path last changed."""


def preload(modules: Iterable[str]) -> list[str]:
    """Import them; returns those that could not be, with the reason."""
    lacking, before = [], set(sys.modules)
    with _watched(), redirect_stderr(io.StringIO()):
        for name in modules:
            try:
                import_module(name)
            except ModuleNotFoundError:
                continue  # not installed: left out
            except Exception as error:
                lacking.append(f"{name} ({type(error).__name__}: {error})")
        _preloaded.update(_top(sys.modules.keys() - before) - _top(before))
    system.libc.fflush(None)  # what waits in a buffer would be written by each fork
    _libraries.update(_folders())
    return lacking


def make_room(folder: str) -> None:
    """Forget packages that modules in a folder, first on the path, are to take the place of."""
    shadowed = {entry.partition(".")[0] for entry in os.listdir(folder)} & _preloaded  # noqa: PTH208
    for name in [name for name in sys.modules if shadowed and name.partition(".")[0] in shadowed]:
        del sys.modules[name]


def libraries_changed() -> bool:
    """Has something been installed since?"""
    now = _folders()
    return any(now.get(folder) != changed for folder, changed in _libraries.items())


def threads() -> int:
    """How many a fork would lose, itself included.

    OpenBLAS has some as soon as it is there, but ends them when the process forks, so one is tried.
    """
    child = os.fork()
    if child == 0:
        os._exit(0)
    with suppress(ChildProcessError):  # reaped by the Linux kernel
        os.waitpid(child, 0)
    for _ in range(_LOOKS):  # one that has just ended is still listed for a moment
        count = len(os.listdir("/proc/self/task"))  # noqa: PTH208
        if count == 1:
            break
        time.sleep(_PAUSE_S)
    return count


def freshen() -> None:
    """In a fork, before agent code: as a new process would be."""
    tempfile.tempdir = None
    threading.main_thread()._set_native_id()  # type: ignore[attr-defined]  # not done by Python
    random = sys.modules.get("numpy.random")
    if random is not None:
        random.seed()
    process = sys.modules.get("multiprocessing.process")
    if process is not None:
        process.current_process().authkey = os.urandom(32)
    settle()


def settle() -> None:
    """What modules have taken from the environment and the current folder, taken anew."""
    time.tzset()
    site.USER_BASE = site.USER_SITE = None
    site.getusersitepackages()
    process = sys.modules.get("multiprocessing.process")
    if process is not None:
        with suppress(OSError):
            process.ORIGINAL_DIR = os.getcwd()  # type: ignore[attr-defined]  # noqa: PTH109


def _top(names: Iterable[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


class _NothingFound:
    """A finder that finds nothing: it is asked last, for what no other could find."""

    def find_spec(self, name: str, *_: Any) -> None:
        if "." not in name:
            not_found.add(name)


class _NotedEnviron(type(os.environ)):  # type: ignore[misc]
    def __getitem__(self, name: str) -> str:
        variables_read.add(name)
        return str(super().__getitem__(name))


@contextmanager
def _watched() -> Iterator[None]:
    """Note what is asked for meanwhile; the environment stays as it is."""
    finder, environ, kind = _NothingFound(), os.environ, type(os.environ)
    before = dict(environ)
    environ.update(_MEANWHILE)
    sys.meta_path.append(finder)
    environ.__class__ = _NotedEnviron
    try:
        yield
    finally:
        environ.__class__ = kind
        sys.meta_path.remove(finder)
        environ.clear()
        environ.update(before)


def _folders() -> dict[str, int]:
    found = {}
    for folder in sys.path:
        with suppress(OSError):
            found[folder] = os.stat(folder).st_mtime_ns  # noqa: PTH116
    return found
