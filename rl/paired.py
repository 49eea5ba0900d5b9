"""Paired evaluation of ideators by name, on the help states of a store."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random

from mle_ideator.errors import UsageError
from mle_ideator.rl.evaluation import Evaluation, evaluate
from mle_ideator.rl.evaluation.values import Try
from mle_ideator.rl.opening import opened_rollouts
from mle_ideator.rl.values import StateCard
from mle_ideator.setups import ideator_of
from mle_ideator.types import Value
from mle_ideator.waiting import release

LOG = "tries.jsonl"
Told = Callable[[int, int, Try], None]


class Wanted(Value, frozen=True, kw_only=True):
    """Who is to be compared, on what, and how."""

    states: Path
    ideators: tuple[str, ...]
    limit: int | None = None
    """So many help states, drawn by the seed; else all."""
    ideas: int = 1
    seed: int = 0
    attempts: int = 1
    workers: int | None = None
    engine: str = "local"
    address: str | None = None
    sandbox: str | None = None
    out: Path | None = None
    """Folder that tries are written to, and gone on from."""


async def paired(wanted: Wanted, told: Told) -> Evaluation:
    """Compare them; `told` hears of each try. Raises `UsageError` if the call is wrong."""
    if len(set(wanted.ideators)) < len(wanted.ideators):
        raise UsageError("an ideator is named twice; each is asked once for each state.")
    async with AsyncExitStack() as stack:
        opening = opened_rollouts(
            wanted.states,
            engine=wanted.engine,
            workers=wanted.workers,
            address=wanted.address,
            sandbox=wanted.sandbox,
        )
        rollouts = await stack.enter_async_context(opening)
        chosen = _chosen(rollouts.cards(), wanted)
        contenders = {name: ideator_of(name, {}) for name in wanted.ideators}
        for agent in contenders.values():
            stack.push_async_callback(release, agent)
        done, planned = 0, len(chosen) * len(contenders) * wanted.ideas

        def heard(one: Try) -> None:
            nonlocal done
            done += 1
            told(done, planned, one)

        if wanted.out:
            wanted.out.mkdir(parents=True, exist_ok=True)
        return await evaluate(
            contenders,
            rollouts,
            chosen,
            ideas=wanted.ideas,
            seed=wanted.seed,
            attempts=wanted.attempts,
            parallel=2 * (wanted.workers or len(os.sched_getaffinity(0))),
            log=wanted.out / LOG if wanted.out else None,
            setting=f"sandbox {wanted.sandbox or 'of the session'}",
            listener=heard,
        )


def _chosen(cards: Sequence[StateCard], wanted: Wanted) -> Sequence[StateCard]:
    if not cards:
        raise UsageError(f"{wanted.states} holds no help state; fill it with `collect`.")
    if wanted.limit is None or wanted.limit >= len(cards):
        return cards
    return Random(wanted.seed).sample(list(cards), wanted.limit)
