"""Joining a Ray cluster, or starting one here."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mle_ideator.errors import RuntimeFailure, UsageError

_CONNECT_S = 10.0


def imported() -> Any:
    """The package. Raises `UsageError` with how to get it."""
    try:
        import ray
    except ImportError as error:
        raise UsageError(
            f"the Ray engine needs the package ray ({error}): pip install 'mle-ideator[ray]'."
        ) from error
    return ray


def connected(address: str | None, cores: int | None = None) -> Any:
    """The package, with the cluster at `address` (`HOST:PORT`, `auto`) joined, or one started here,
    with so many cores, that is reached from this machine only. Raises `RuntimeFailure`. Blocks."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # what it would write of workers and nodes to our standard output is told by us
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".?")
    if address:
        _require_reachable(address)
    else:
        # despite its name what keeps Ray on the loopback interface, if it is set before the import
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    ray = imported()
    here = {} if address else {"include_dashboard": False, "num_cpus": cores}
    try:
        with _own_handler():
            ray.init(address=address or "local", log_to_driver=False, logging_level="error", **here)
    except Exception as error:  # Ray raises all kinds, and plain ones
        what = f"the Ray cluster {address} can not be reached" if address else "Ray can not start"
        raise RuntimeFailure(f"{what}: {error}") from error
    return ray


@contextmanager
def _own_handler() -> Iterator[None]:
    """Ray's own would end this process at once; it is put in place in the main thread only."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


def _require_reachable(address: str) -> None:
    """Ray itself waits for minutes where nobody listens."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not port.isdigit():
        return  # `auto`: Ray knows where
    try:
        socket.create_connection((host, int(port)), _CONNECT_S).close()
    except OSError as error:
        raise RuntimeFailure(f"the Ray cluster {address} can not be reached: {error}") from error
