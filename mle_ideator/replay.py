"""From a journal back to a situation in which an ideator was asked, or could have been."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mle_ideator.errors import UsageError
from mle_ideator.help_policy import HelpPolicy, request_in
from mle_ideator.journal import Asked, Decided, Event, Resumed, Solved, Started, Stepped
from mle_ideator.limits import Clock, Limits
from mle_ideator.results import known_usage, trajectory_of
from mle_ideator.types import (
    Decision,
    HelpRequest,
    HelpState,
    Remaining,
    SeekHelp,
    Situation,
    Step,
)


def help_state_at(events: Sequence[Event], step: int | None = None) -> HelpState:
    """What an ideator saw, or would have seen, when a step was decided.

    At a help request it is what the ideator was given then. At any other step the runtime asks, and
    solution.py and what was left are what the journal tells of them. Without a step it is the last
    help request, or else the end of the run. Raises `UsageError` if there is no such step.
    """
    steps = sum(isinstance(event, Stepped) for event in events)
    decided = _decided(events)
    requests = [number for number, place in decided.items() if _request(events[place])]
    number = step if step is not None else max(requests, default=steps + 1)
    if not 1 <= number <= steps + 1:
        raise UsageError(f"the run has no step {number}: it has {steps}, {steps + 1} is the next.")
    place = decided.get(number)
    if place is None:
        past, asked, request = events, None, None
    else:
        past, request = events[:place], _request(events[place])
        asked = next((e for e in events[place:] if isinstance(e, Asked) and e.step == number), None)
    situation = _situation(past, asked)
    return HelpState(situation, request or request_in(situation, HelpPolicy("agent")))


def _decided(events: Sequence[Event]) -> dict[int, int]:
    """By step, where its decision stands. What was broken off and decided anew is not there."""
    places: dict[int, int] = {}
    done = 0
    for place, event in enumerate(events):
        match event:
            case Decided(step=step):
                places[step] = place
            case Stepped(step=Step(number=done)):
                pass
            case Resumed():
                places.pop(done + 1, None)
    return places


def _request(event: Event) -> HelpRequest | None:
    match event:
        case Decided(decision=Decision(action=SeekHelp(request=request))):
            return request
    return None


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
        sandbox=[event for event in past if isinstance(event, Started | Resumed)][-1].sandbox,
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
    sought = sum(isinstance(event.step.action, SeekHelp) for event in steps)
    requests = min(sought, limits.help_requests)
    return clock.remaining(len(steps), requests, known_usage(past))
