"""Episodes on the help states of a store, executed by worker processes of this machine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from mle_ideator.ideators.prompted.messages import Form
from mle_ideator.rl.environments.one_step import CONTEXT_TOKENS, OneStep
from mle_ideator.rl.opening import opened_rollouts


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
    async with opened_rollouts(Path(path), workers=workers, keep_reached=keep_reached) as rollouts:
        yield OneStep(
            rollouts=rollouts,
            context_tokens=context_tokens,
            form=form,
            seed=seed,
            attempts=attempts,
        )
