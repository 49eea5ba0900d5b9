"""Rollouts as work: what a worker process does with a help state that it is sent, and what it
sends back."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from mle_ideator import __version__
from mle_ideator.journal import FILE, read_journal
from mle_ideator.results import record_of
from mle_ideator.rl.executor import Done, NotFinal, Resources, Work
from mle_ideator.rl.reward import IdeaOutcome
from mle_ideator.rl.rollout import roll_out
from mle_ideator.rl.states import packed_request, unpack_state
from mle_ideator.rl.values import RolloutJob, RolloutResult, result_of
from mle_ideator.types import Idea, SeekHelp, Value

FUNCTION = f"{__name__}:execute"
_OF_WORK: dict[str, IdeaOutcome] = {"timeout": "timeout"}
"""What an idea is worth whose rollout was killed. All else is not the idea's doing."""


class Order(Value, frozen=True, kw_only=True):
    """A job, and how it is to be done."""

    job: RolloutJob
    here: dict[str, Any]
    """What of the session's config is to be otherwise: `threads`, `gpus`, `sandbox`."""


class Executed(Value, frozen=True, kw_only=True):
    """What a worker sends back."""

    result: RolloutResult
    reached: bytes | None
    """The help state that was reached, packed; `None` if there is none."""


def execute(argument: bytes, inputs: list[Path]) -> bytes:
    """Roll an order out from the packed help state that is the only input."""
    order = msgspec.json.decode(argument, type=Order)
    with tempfile.TemporaryDirectory(prefix="rollout-") as name:
        state, run = Path(name, "state"), Path(name, "run")
        unpack_state(inputs[0], state)
        result = asyncio.run(roll_out(state, order.job, run, order.here))
        reached = _reached(run) if (run / FILE).exists() else None
    answer = msgspec.msgpack.encode(Executed(result=result, reached=reached))
    return NotFinal(answer) if result.reward is None else answer


def _reached(run: Path) -> bytes | None:
    """The help request with which a rollout ended, if it came so far."""
    events = read_journal(run)
    steps = record_of(events).steps
    asked = [step for step in steps if isinstance(step.action, SeekHelp)]
    if asked[-1].idea is not None:
        return None
    return packed_request(run, asked[-1].number)


def work_for(
    order: Order, idea: Idea | str | None, packed: Path, limit_s: float, resources: Resources
) -> Work:
    """The state's id stands for its task, its implementer and all that was done before; `idea` for
    the proposal: it, or what the implementer goes by in it."""
    job = msgspec.to_builtins(order.job) | {"proposal": msgspec.to_builtins(idea)}
    key = msgspec.json.encode({"job": job, "here": order.here}, order="sorted")
    return Work(
        function=FUNCTION,
        argument=msgspec.json.encode(order),
        key=f"{__version__} {key.decode()}",
        inputs=(str(packed),),
        limit_s=limit_s,
        resources=resources,
    )


def executed_by(done: Done, job: RolloutJob) -> Executed:
    """What came of it, also where nothing came back."""
    if done.status == "ok":
        executed = msgspec.msgpack.decode(done.value, type=Executed)
        # It may have been found for another idea that is carried out alike.
        result = msgspec.structs.replace(executed.result, idea=job.proposal.idea)
        return msgspec.structs.replace(executed, result=result)
    outcome = _OF_WORK.get(done.status, "infra_error")
    detail = f"{done.status}: {done.detail}"
    result = result_of(job, outcome, seconds=done.seconds, detail=detail)
    return Executed(result=result, reached=None)
