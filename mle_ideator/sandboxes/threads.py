"""Blocking work in threads: what may take long never keeps what must be quick from its turn.

The event loop's own threads are few, and shared with all that the runtime does.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_MOST_SLOW, _MOST_QUICK = 64, 256
"""Threads. They are started when they are needed; each sandbox has a few at a time."""


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """For what takes seconds or minutes (starting, copying, a daemon's answers): may wait."""
    return await _run("slow", _MOST_SLOW, partial(function, *args, **kwargs))


async def at_once(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """For what a cell or an end waits for: watching, mending, killing."""
    return await _run("quick", _MOST_QUICK, partial(function, *args, **kwargs))


async def _run(kind: str, most: int, work: Callable[[], T]) -> T:
    pool = _pool(kind, most, os.getpid())
    return await asyncio.get_running_loop().run_in_executor(pool, work)


@cache
def _pool(kind: str, most: int, _process: int) -> ThreadPoolExecutor:
    """One in each process: a fork has none of its parent's threads."""
    return ThreadPoolExecutor(most, thread_name_prefix=f"sandboxes-{kind}")
