"""One answer, executed once from a help state (arXiv 2601.17596): a session that is gone on with.

The loop is `run_session`, as everywhere: the help request is asked again and answered with the
idea, the frozen implementer makes one attempt, what it submits is graded, and the session ends with
another help request. So what a rollout reached is a help state as any other.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mle_ideator.benchmarks.reopening import place_of
from mle_ideator.config import RunConfig
from mle_ideator.errors import UsageError
from mle_ideator.journal import FILE, Asked, Event, Journal, Started, read_journal
from mle_ideator.limits import Limits
from mle_ideator.results import record_of
from mle_ideator.rl.attempt import OneAnswer, OneAttempt
from mle_ideator.rl.reward import (
    IdeaOutcome,
    best_score,
    idea_rewards,
    without_trying,
)
from mle_ideator.rl.values import RolloutJob, RolloutResult, result_of
from mle_ideator.session import Past, run_session
from mle_ideator.setups import Setup, implementer_of
from mle_ideator.types import Execute, HelpRequest, Proposal, Step, Usage

WORKSPACE = "workspace"
"""In a help state's folder, beside its journal."""
_TOLD = 2000
"""Characters of what went wrong."""


async def roll_out(
    state: Path, job: RolloutJob, folder: Path, here: Mapping[str, Any] | None = None
) -> RolloutResult:
    """Execute an answer from the help state in the folder `state`, of which nothing is changed.

    `folder` is new; afterwards it is the folder of a run, with the help state that was reached.
    `here` holds what of the config is to be otherwise on this machine: `threads`, `gpus`,
    `sandbox`. An answer that can not be read is not carried out; where there is none, the
    implementer makes its attempt without.

    Raises `RuntimeFailure` where the runtime, not the answer, is why nothing was tried, and
    `UsageError` if the help state can not be gone on with here.
    """
    began = time.monotonic()
    events = read_journal(state)
    record = record_of(events)
    if (outcome := unreadable(job.proposal)) is not None:
        return result_of(job, outcome, before=best_score(record.solutions))
    # What the session's models used is not the rollout's.
    past = dataclasses.replace(record.past, spent=Usage())
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_bytes((state / FILE).read_bytes())
    setup = _setup(record.started, _request(events), past, job, state, folder, here or {})
    try:
        with Journal(folder / FILE) as journal:
            await run_session(setup, journal, past)
    finally:
        await setup.aclose()
    after = record_of(read_journal(folder))
    rewards = idea_rewards(after.steps, after.solutions, setup.task.min_delta)
    found = next(one for one in rewards if one.step == len(past.trajectory) + 1)
    return result_of(
        job,
        found.outcome,
        before=found.before,
        after=found.after,
        improved=found.improved,
        seconds=time.monotonic() - began,
        detail=_why(after.steps[found.step :]) if found.after is None else "",
    )


def unreadable(proposal: Proposal) -> IdeaOutcome | None:
    """What an answer earns that is no well-formed idea, so that nothing is executed."""
    status = "malformed_idea" if proposal.malformed else "no_idea"
    outcome = without_trying(proposal.idea, status)
    return outcome if outcome == "invalid_format" else None


def _why(steps: Sequence[Step]) -> str:
    """The end of what the last cell of an attempt without a solution wrote."""
    cells = [step for step in steps if isinstance(step.action, Execute)]
    return cells[-1].observation.text[-_TOLD:] if cells else "no cell was run"


def _setup(
    started: Started,
    request: HelpRequest,
    past: Past,
    job: RolloutJob,
    state: Path,
    folder: Path,
    here: Mapping[str, Any],
) -> Setup:
    changed = {name: value for name, value in here.items() if name != "sandbox"}
    started = msgspec.structs.replace(started, config=started.config | changed)
    place, _ = place_of(started, folder, here.get("sandbox"))
    if place.config.data is not None:
        raise UsageError(
            "a help state of a person's own data can not be gone on with: name a task."
        )
    config = _config(place.config, past, job)
    before = len(past.trajectory)
    workspace = state / WORKSPACE
    return Setup(
        task=place.task,
        grader=place.grader,
        sandbox=place.sandbox,
        config=config,
        implementer=OneAttempt(
            implementer_of(config.implementer, config.implementer_options),
            request,
            before,
            job.attempts,
        ),
        ideator=OneAnswer(job.proposal, before),
        folder=folder,
        snapshot=workspace if workspace.is_dir() else None,
        hands_over=False,
    )


def _config(config: RunConfig, past: Past, job: RolloutJob) -> RunConfig:
    """The session's, with room for the attempt: a help request, its cells, the last request, the
    end. What agents see as left is as in the session where that is more."""
    steps = len(past.trajectory) + job.attempts + 3
    limits: Limits = msgspec.structs.replace(
        config.limits,
        steps=max(config.limits.steps, steps),
        help_requests=max(config.limits.help_requests, past.help_requests + 2),
        # twice, as a part is kept back for the end
        time_s=max(
            config.limits.time_s,
            2 * (past.elapsed_s + job.attempts * config.limits.step_time_s),
        ),
    )
    return msgspec.structs.replace(
        config,
        seed=config.seed + job.seed,
        limits=limits,
        help_policy="agent",
        keep_help_states=True,
    )


def _request(events: Sequence[Event]) -> HelpRequest:
    last = events[-1]
    if not isinstance(last, Asked):
        raise UsageError(
            "the journal of a help state ends with its help request; this one does not."
        )
    return last.request
