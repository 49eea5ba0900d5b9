"""The help states of a store, and their rollouts by an executor."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from mle_ideator.rl.execution import Order, executed_by, work_for
from mle_ideator.rl.executor import Executor, Resources
from mle_ideator.rl.gists import gists_of
from mle_ideator.rl.rollout import unreadable
from mle_ideator.rl.states import StateStore, export_state
from mle_ideator.rl.values import RolloutJob, RolloutResult, StateCard, result_of
from mle_ideator.types import HelpState, Idea

LIMIT_S = 1800.0
"""Of one rollout, after which it is killed. Its cells have limits of their own."""


@dataclass
class StoredRollouts:
    """Implements `Rollouts`. What a rollout reaches becomes a help state of the same store."""

    store: StateStore
    executor: Executor
    packed: Path
    """Folder for help states as single files, which is what workers are sent."""
    here: dict[str, Any] = field(default_factory=dict)
    """What of each session's config is to be otherwise: `threads`, `gpus`, `sandbox`."""
    limit_s: float = LIMIT_S
    resources: Resources = field(default_factory=Resources)
    keep_reached: bool = True

    def __post_init__(self) -> None:
        self._gist = gists_of(self.store)

    async def run(self, job: RolloutJob) -> RolloutResult:
        if (outcome := unreadable(job.proposal)) is not None:
            return result_of(job, outcome, before=self.store.card(job.state).score)
        file = await asyncio.to_thread(self._pack, job.state)
        order, idea = Order(job=job, here=self.here), await asyncio.to_thread(self._heeded, job)
        done = await self.executor.submit(work_for(order, idea, file, self.limit_s, self.resources))
        executed = executed_by(done, job)
        if executed.reached is None or not self.keep_reached:
            return executed.result
        card, _ = await asyncio.to_thread(self.store.add_packed, executed.reached, parent=job.state)
        return msgspec.structs.replace(executed.result, child=card.id)

    def help_state(self, id: str) -> HelpState:
        return self.store.help_state(id)

    def card(self, id: str) -> StateCard:
        return self.store.card(id)

    def cards(self) -> Sequence[StateCard]:
        return self.store.cards()

    def counts(self) -> dict[str, float]:
        """So far: what was executed, and what was answered without."""
        now = self.executor.counters()
        executed = now.done + sum(now.failed.values())
        return {"executions": executed, "cache_hits": now.cache_hits + now.merged}

    def _heeded(self, job: RolloutJob) -> Idea | str | None:
        """What the state's implementer goes by in an answer."""
        idea = job.proposal.idea
        gist = None if idea is None else self._gist(job.state)
        return gist(idea) if gist and idea else idea

    def _pack(self, state: str) -> Path:
        file = self.packed / f"{state}.state"
        if not file.exists():
            self.packed.mkdir(parents=True, exist_ok=True)
            export_state(self.store, state, file)
        return file
