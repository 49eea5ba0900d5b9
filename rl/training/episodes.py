"""What a run draws from: a buffer of its help states, and what executes answers to them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from mle_ideator.rl.buffer.buffer import EvolvingBuffer
from mle_ideator.rl.environments.one_step import OneStep
from mle_ideator.rl.opening import opened_rollouts
from mle_ideator.rl.training.beginning import cards_of
from mle_ideator.rl.training.config import TrainConfig
from mle_ideator.rl.training.proxy import proxied


def new_buffer(config: TrainConfig, store: Path) -> EvolvingBuffer:
    """With the help states that a run begins with."""
    buffer = EvolvingBuffer(config.curriculum, config.seed)
    for card in cards_of(config, store):
        buffer.add(card)
    return buffer


@asynccontextmanager
async def opened_steps(
    config: TrainConfig, store: Path, prompt_tokens: int
) -> AsyncIterator[OneStep]:
    """The store's help states as episodes, with what executes answers to them."""
    settings = config.rollouts
    async with opened_rollouts(
        store,
        engine=settings.engine,
        workers=settings.workers,
        address=settings.address,
        sandbox=settings.sandbox,
        limit_s=settings.limit_s,
        keep_reached=settings.keep_reached,
    ) as rollouts:
        yield OneStep(
            rollouts=proxied(rollouts, config.proxy, config.seed),
            context_tokens=prompt_tokens,
            form=config.writing.form,
            attempts=settings.attempts,
        )
