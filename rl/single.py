"""One rollout in this process, for a person to look at."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from mle_ideator.ideators.answering import proposal_of
from mle_ideator.rl.buffer.disk import KeptBuffer
from mle_ideator.rl.files import files_of
from mle_ideator.rl.rollout import roll_out
from mle_ideator.rl.states import StateStore, harvest
from mle_ideator.rl.values import RolloutJob, RolloutResult, StateCard
from mle_ideator.setups import ideator_of
from mle_ideator.types import HelpRequest, Proposal, Value
from mle_ideator.waiting import release


class Shown(Value, frozen=True, kw_only=True):
    """A help state, the answer to it, and what came of that."""

    card: StateCard
    request: HelpRequest
    proposal: Proposal
    result: RolloutResult


async def single_rollout(
    path: Path,
    prefix: str,
    ideator: str,
    *,
    seed: int = 0,
    attempts: int = 1,
    here: Mapping[str, Any] | None = None,
) -> Shown:
    """Ask an ideator, execute its answer, and keep what was learnt and reached.

    Raises `UsageError`, also if there is no such store or state, and `RuntimeFailure`.
    """
    with StateStore.that_is_there(path) as store:
        card = store.card(store.find(prefix))
        state = store.help_state(card.id)
        agent = ideator_of(ideator, {})
        try:
            proposal = await proposal_of(agent, state)
        finally:
            await release(agent)
        job = RolloutJob(state=card.id, proposal=proposal, seed=seed, attempts=attempts)
        with tempfile.TemporaryDirectory(prefix="rollout-") as name:
            folder, run = Path(name, "state"), Path(name, "run")
            store.write_to(card.id, folder)
            result = await roll_out(folder, job, run, here)
            reached = harvest(run, store, parent=card.id) if run.exists() else None
        cards = (*reached.new, *reached.known) if reached else ()
        with KeptBuffer(files_of(path).buffer) as buffer:
            for one in (card, *cards):
                buffer.add(one)
            buffer.observe(card.id, [result.reward])
    child = cards[-1].id if cards else None
    return Shown(
        card=card,
        request=state.request,
        proposal=proposal,
        result=msgspec.structs.replace(result, child=child),
    )
