"""What can be known of a help state without opening it, told from its events."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from mle_ideator.journal import Event, Rejected, Solved, Started, Stepped
from mle_ideator.rl.states.identity import identity_of
from mle_ideator.rl.states.recorded import Recorded
from mle_ideator.rl.values import Kind, StateCard
from mle_ideator.types import Execute, Score, Solution


def card_of(
    state: Recorded,
    *,
    task: str | None = None,
    parent: str | None = None,
    depth: int = 0,
    collected_at: str | None = None,
) -> StateCard:
    """The card of a help state; `task` is its spec, by default the one that the session had."""
    return StateCard(
        id=identity_of(state),
        task=task or _task(state.started),
        kind=kind_of(state.events),
        depth=depth,
        parent=parent,
        steps=sum(isinstance(event, Stepped) for event in state.events),
        score=_best([event.solution for event in state.events if isinstance(event, Solved)]),
        collected_at=collected_at or datetime.now(UTC).isoformat(timespec="seconds"),
    )


def kind_of(events: Sequence[Event]) -> Kind:
    """`draft` before the first valid solution; `debug` where what was executed last failed, or
    wrote a submission that was rejected; else `improve`."""
    if not any(isinstance(event, Solved) for event in events):
        return "draft"
    steps = [event.step for event in events if isinstance(event, Stepped)]
    last = next((step for step in reversed(steps) if isinstance(step.action, Execute)), None)
    rejected = {event.step for event in events if isinstance(event, Rejected)}
    if last and (last.observation.status != "ok" or last.number in rejected):
        return "debug"
    return "improve"


def _task(started: Started) -> str:
    spec: str | None = started.config.get("task")
    return spec or started.task.id


def _best(solutions: Sequence[Solution]) -> Score | None:
    """By the public score, or by validation if any lacks one: they are never mixed."""
    public = all(solution.scores.public for solution in solutions)
    best: Score | None = None
    for solution in solutions:
        score = solution.scores.public if public else solution.scores.validation
        if score is not None and score.better_than(best):
            best = score
    return best
