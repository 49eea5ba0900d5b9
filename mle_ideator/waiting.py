"""Waiting: for the first of several things, for what must not be broken off, for an end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def release(holder: object) -> None:
    """Close the connections of an agent or a model, if it holds any: `aclose` is optional."""
    if close := getattr(holder, "aclose", None):
        await close()


async def first_of(*futures: asyncio.Future[Any], timeout_s: float) -> None:
    """Wait until one is done or the time is up. Cancels none."""
    await asyncio.wait(futures, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)


class _Uncancellable(asyncio.Task[T]):
    """`asyncio.run` cancels every task at a second Ctrl-C, also those that clean up."""

    def cancel(self, msg: Any | None = None) -> bool:
        return False


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end however often the caller is cancelled meanwhile; then pass that on."""
    task = _Uncancellable(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        task.exception()
        raise asyncio.CancelledError
    return task.result()
