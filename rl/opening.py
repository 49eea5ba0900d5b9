"""The help states of a store, with what executes answers to them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mle_ideator.errors import UsageError
from mle_ideator.rl.executor import Executor, ResultCache
from mle_ideator.rl.files import files_of
from mle_ideator.rl.states import StateStore
from mle_ideator.rl.stored import LIMIT_S, StoredRollouts


@asynccontextmanager
async def opened_rollouts(
    path: Path,
    *,
    engine: str = "local",
    workers: int | None = None,
    address: str | None = None,
    sandbox: str | None = None,
    limit_s: float = LIMIT_S,
    keep_reached: bool = False,
) -> AsyncIterator[StoredRollouts]:
    """Open the store `path`, until the end.

    `engine`: `local`, with so many workers (by default one a core), or `ray`, on the cluster at
    `address`. With another `sandbox` than the sessions had, if one is named. With `keep_reached`,
    what rollouts reach is added to the store. Raises `UsageError`, also if there is no such store.
    """
    files = files_of(path)
    with StateStore.that_is_there(path) as store:
        async with _executor(engine, workers, address, ResultCache(files.cache)) as executor:
            yield StoredRollouts(
                store,
                executor,
                files.packed,
                here=_here(sandbox),
                limit_s=limit_s,
                keep_reached=keep_reached,
            )


def _here(sandbox: str | None) -> dict[str, Any]:
    """A worker has a core; more threads would wait for each other."""
    return {"threads": 1, **({"sandbox": sandbox} if sandbox else {})}


def _executor(
    engine: str, workers: int | None, address: str | None, cache: ResultCache
) -> Executor:
    if engine == "local":
        from mle_ideator.rl.executor.local import LocalExecutor

        return LocalExecutor(workers, cache=cache)
    if engine == "ray":
        from mle_ideator.rl.executor.cluster import RayExecutor

        return RayExecutor(address, cache=cache)
    raise UsageError(f"unknown engine {engine!r}; known: local, ray.")
