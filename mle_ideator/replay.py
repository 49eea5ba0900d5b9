"""From a journal back to a situation in which an ideator was asked, or could have been."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mle_ideator.errors import UsageError
from mle_ideator.help_policy import HelpPolicy, request_in
from mle_ideator.journal import Asked, Decided, Event, Solved, Spent, Started, Stepped
from mle_ideator.limits import Clock, Limits
from mle_ideator.results import trajectory_of
from mle_ideator.types import (
    HelpState,
    Remaining,
    SeekHelp,
    Situation,
    Step,
    Usage,
)


def help_state_at(events: Sequence[Event], step: int | None = None) -> HelpState:
    """What an ideator saw, or would have seen, when a step was decided.

    At a help request it is what the ideator was given then. At any other step the runtime asks, and
    solution.py and what was left are what the journal tells of them. Without a step it is the last
    help request, or else the end of the run. Raises `UsageError` if there is no such step.
    """
    steps = sum(isinstance(event, Stepped) for event in events)
    requests = [event.step for event in events if isinstance(event, Decided) and _seeks(event)]
    number = step if step is not None else (requests or [steps + 1])[-1]
    if not 1 <= number <= steps + 1:
        raise UsageError(f"the run has no step {number}: it has {steps}, {steps + 1} is the next.")
    # the last: what was broken off is decided anew
    asked = next((e for e in reversed(events) if isinstance(e, Asked) and e.step == number), None)
    decided = next(
        (e for e in reversed(events) if isinstance(e, Decided) and e.step == number), None
    )
    past = events[: events.index(decided)] if decided else events
    situation = _situation(past, asked)
    if decided and isinstance(decided.decision.action, SeekHelp):
        return HelpState(situation, decided.decision.action.request)
    return HelpState(situation, request_in(situation, HelpPolicy("agent")))


def _seeks(event: Decided) -> bool:
    return isinstance(event.decision.action, SeekHelp)


def _situation(past: Sequence[Event], asked: Asked | None) -> Situation:
    """The situation after some events; `asked` knows better what they do not tell."""
    started = past[0]
    assert isinstance(started, Started)  # noqa: S101 - read_journal has made sure
    task = started.task
    solved = [event for event in past if isinstance(event, Solved)]
    bests = [event.solution.number for event in solved if event.best]
    return Situation(
        task=task.as_agents_see_it(),
        trajectory=trajectory_of(past),
        solutions=tuple(event.solution.as_agents_see_it(task) for event in solved),
        best=bests[-1] if bests else None,
        code=asked.code if asked else _code(past),
        remaining=asked.remaining if asked else _remaining(started, past),
        sandbox=started.sandbox,
        seed=started.config.get("seed", 0),
    )


def _code(past: Sequence[Event]) -> str | None:
    """The last solution.py that a journal knows of: asked about, accepted or restored."""
    code: str | None = None
    codes: dict[int | None, str] = {}
    for event in past:
        match event:
            case Asked():
                code = event.code
            case Solved(solution=solution):
                code = codes[solution.number] = solution.code
            case Stepped(step=Step(idea=idea)) if idea:
                code = codes.get(idea.reverts_to, code)
    return code


def _remaining(started: Started, past: Sequence[Event]) -> Remaining:
    """What was left, by the clock of the events."""
    limits = msgspec.convert(started.config.get("limits", {}), Limits)
    last = past[-1]
    start, now = [0.0], 0.0 if isinstance(last, Started) else last.at_s
    clock = Clock(limits, lambda: start.pop() if start else now)
    steps = [event for event in past if isinstance(event, Stepped)]
    for event in steps:
        if event.step.solution is not None:
            clock.solution_took(event.step.observation.duration_s)
    decisions = [event.decision for event in past if isinstance(event, Decided)]
    usages = [d.usage for d in decisions] + [event.ideator_usage for event in steps]
    usages += [event.usage for event in past if isinstance(event, Spent)]
    sought = sum(isinstance(decision.action, SeekHelp) for decision in decisions)
    requests = min(sought, limits.help_requests)
    return clock.remaining(len(steps), requests, sum((u.known for u in usages), Usage()))
