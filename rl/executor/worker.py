"""What runs in a worker process: the work that it is given, one after the other.

`python -P -m mle_ideator.rl.executor.worker DESCRIPTOR` reads orders from that socket and answers
each. It lives on between them, so that imports are paid once. A result that has a key is in the
cache before it is told: whatever happens to the driver, it is not lost.
"""

from __future__ import annotations

import math
import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Container, Iterable
from concurrent.futures import thread as pools
from importlib import import_module
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from mle_ideator.errors import RuntimeFailure, UsageError
from mle_ideator.rl.executor import frames, guard
from mle_ideator.rl.executor.cache import ResultCache
from mle_ideator.rl.executor.frames import Hello, Order, Ready, Reply
from mle_ideator.rl.executor.values import NotFinal

IMPORT_S = 300.0
"""For the module of a function, once in a worker."""
_SHOWN = 4000
"""Characters of a traceback, from its end."""
Function = Callable[[bytes, list[Path]], bytes]
_of_pools: Container[threading.Thread] = pools._threads_queues


def main() -> None:
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)
    clock = guard.fork_worker(connection)
    hello = frames.receive(connection, Hello)
    if hello:
        own = [path for path in sys.path if path not in hello.import_path]
        sys.path[:] = [*hello.import_path, *own]
        connection.sendall(frames.packed(Ready(os.getpid(), os.getppid())))
    while order := frames.receive(connection, Order):
        connection.sendall(frames.packed(carry_out(order, clock)))


def carry_out(order: Order, clock: guard.Clock) -> Reply:
    """Do it, unless its result is known by now; keep what is final."""
    cache = ResultCache(order.cache) if order.cache and order.identity else None
    identity = order.identity or ""
    if cache and (known := cache.get(identity)) is not None:
        return Reply(status="ok", value=known, cached=True)
    before = set(threading.enumerate())
    reply = _called(order, clock)
    if cache and reply.status == "ok" and reply.final:
        reply = _kept(reply, cache, identity)
    return replace(reply, spent=any(map(_holds, set(threading.enumerate()) - before)))


def _called(order: Order, clock: guard.Clock) -> Reply:
    started = time.monotonic()
    try:
        clock.set(IMPORT_S)
        function = _found(order.function)
        inputs = _present(order.inputs)
        started = time.monotonic()
        clock.set(order.limit_s)
        value = function(order.argument, inputs)
        seconds = time.monotonic() - started
        if not isinstance(value, bytes):
            raise TypeError(f"{order.function} returned {type(value).__name__}, not bytes")
    except BaseException as error:  # also SystemExit: what code does is data
        seconds = time.monotonic() - started
        blame: Literal["error", "infra_error"] = (
            "infra_error" if isinstance(error, RuntimeFailure) else "error"
        )
        return Reply(status=blame, detail=_described(error), seconds=seconds)
    finally:
        clock.set(math.inf)
    final = not isinstance(value, NotFinal)
    return Reply(status="ok", value=bytes(value), seconds=seconds, final=final)


def _found(name: str) -> Function:
    module, _, attribute = name.partition(":")
    function: Function = getattr(import_module(module), attribute)
    return function


def _present(inputs: Iterable[str]) -> list[Path]:
    paths = [Path(path) for path in inputs]
    if missing := [str(path) for path in paths if not path.is_file()]:
        raise UsageError(f"these inputs are no files: {', '.join(missing)}")
    return paths


def _kept(reply: Reply, cache: ResultCache, identity: str) -> Reply:
    """A full disk costs the result its place in the cache, not its reader."""
    try:
        cache.put(identity, reply.value)
    except FileNotFoundError:
        return reply  # a node that does not see the folder: its driver keeps it
    except OSError as error:
        return replace(reply, detail=f"the result could not be kept in the cache: {error}")
    return reply


def _described(error: BaseException) -> str:
    """One line that says it all, then where it happened."""
    where = "".join(traceback.format_exception(error))[-_SHOWN:]
    return f"{type(error).__name__}: {error}\n{where}"


def _holds(thread: threading.Thread) -> bool:
    """Does it go on, and would keep a process from ending? Daemons are meant to stay, and so are
    the threads of pools, which wait for the next work."""
    meant_to_stay = thread.daemon or thread in _of_pools or thread is threading.main_thread()
    return thread.is_alive() and not meant_to_stay


if __name__ == "__main__":
    main()
