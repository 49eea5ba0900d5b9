"""Episodes on the help states of a store, executed by worker processes of this machine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from mle_ideator.ideators.prompted.messages import Form
from mle_ideator.rl.environments.one_step import CONTEXT_TOKENS, OneStep
from mle_ideator.rl.executor import ResultCache
from mle_ideator.rl.executor.local import LocalExecutor
from mle_ideator.rl.files import files_of
from mle_ideator.rl.states import StateStore
from mle_ideator.rl.stored import StoredRollouts


@asynccontextmanager
async def stored_steps(
    path: Path | str,
    *,
    workers: int | None = None,
    keep_reached: bool = False,
    context_tokens: int = CONTEXT_TOKENS,
    form: Form = "tags",
    seed: int = 0,
    attempts: int = 1,
) -> AsyncIterator[OneStep]:
    """Open the store `path`, with so many workers (by default one a core), until the end.

    With `keep_reached`, what rollouts reach is added to the store. Raises `UsageError` if there is
    no such store.
    """
    path = Path(path)
    files = files_of(path)
    cache = ResultCache(files.cache)
    with StateStore.that_is_there(path) as store:
        async with LocalExecutor(workers, cache=cache) as executor:
            yield OneStep(
                rollouts=StoredRollouts(
                    store, executor, files.packed, here={"threads": 1}, keep_reached=keep_reached
                ),
                context_tokens=context_tokens,
                form=form,
                seed=seed,
                attempts=attempts,
            )
