"""From a journal to what a person takes home: the summary and the result files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from mle_ideator.files import replace_file
from mle_ideator.journal import (
    Decided,
    Ended,
    Event,
    Refitted,
    Rerun,
    Resumed,
    Solved,
    Spent,
    Started,
    Stepped,
    Warned,
)
from mle_ideator.session import Past, broken_off
from mle_ideator.solutions import SOLUTION, SUBMISSION
from mle_ideator.types import (
    Decision,
    Idea,
    Outcome,
    Scores,
    SeekHelp,
    Solution,
    Step,
    Usage,
    Value,
)

SUMMARY = "summary.json"


class Record(Value, frozen=True, kw_only=True):
    """A session, put together from its events."""

    started: Started
    steps: tuple[Step, ...]
    solutions: tuple[Solution, ...]
    bests: tuple[int, ...]
    """Numbers of the solutions that were the best when they were made."""
    reruns: tuple[Rerun, ...]
    """Since the session went on last: what was run again before is done anew."""
    refitted: Refitted | None
    warnings: tuple[str, ...]
    implementer_usage: Usage
    ideator_usage: Usage
    spent: Usage
    """Of both, as far as it is known: what limits are kept by."""
    ended: Ended | None
    """`None` while it runs, or after it was killed."""
    at_s: float

    @property
    def final(self) -> Solution | None:
        """The final solution; of an unended session the best one so far."""
        number = self.ended.solution if self.ended else (self.bests or (None,))[-1]
        return next((s for s in self.solutions if s.number == number), None)

    @property
    def reproduced(self) -> Rerun | None:
        """The clean re-run of the final solution, if it worked."""
        final = self.final
        return next(
            (r for r in self.reruns if final and r.reproduced and r.solution == final.number), None
        )

    @property
    def help_requests(self) -> int:
        return sum(isinstance(step.action, SeekHelp) for step in self.steps)

    @property
    def ideas(self) -> tuple[tuple[int, Idea], ...]:
        return tuple((step.number, step.idea) for step in self.steps if step.idea)

    @property
    def past(self) -> Past:
        """To go on with the session."""
        return Past(
            trajectory=self.steps,
            solutions=self.solutions,
            best=next((s for s in self.solutions if s.number in self.bests[-1:]), None),
            help_requests=self.help_requests,
            spent=self.spent,
            elapsed_s=self.at_s,
        )

    @property
    def improved(self) -> tuple[int, ...]:
        """Steps of the ideas that led at once to a new best: the first solution after was one."""
        made = [(solution.step, solution.number) for solution in self.solutions]
        asked = [number for number, _ in self.ideas]
        until = [*asked[1:], sys.maxsize]
        firsts = [
            next((number for step, number in made if start < step < end), None)
            for start, end in zip(asked, until, strict=False)
        ]
        return tuple(step for step, first in zip(asked, firsts, strict=True) if first in self.bests)


def record_of(events: Sequence[Event]) -> Record:
    """Replay a journal. The first event is `Started`."""
    started = events[0]
    assert isinstance(started, Started)  # noqa: S101 - read_journal has made sure
    decisions = [event.decision for event in events if isinstance(event, Decided)]
    ideas = [event.ideator_usage for event in events if isinstance(event, Stepped)]
    solved = [event for event in events if isinstance(event, Solved)]
    lately, last = _since_resumed(events), events[-1]
    return Record(
        started=started,
        steps=trajectory_of(events),
        solutions=tuple(event.solution for event in solved),
        bests=tuple(event.solution.number for event in solved if event.best),
        reruns=tuple(event for event in lately if isinstance(event, Rerun)),
        refitted=next((event for event in lately if isinstance(event, Refitted)), None),
        warnings=tuple(event.message for event in events if isinstance(event, Warned)),
        implementer_usage=sum((decision.usage for decision in decisions), _spent(events)),
        ideator_usage=sum(ideas, Usage()),
        spent=known_usage(events),
        ended=next((event for event in lately if isinstance(event, Ended)), None),
        at_s=0.0 if isinstance(last, Started) else last.at_s,
    )


def trajectory_of(events: Sequence[Event]) -> tuple[Step, ...]:
    """The steps; what the implementer was told when the session went on stands in the last one
    before."""
    steps: list[Step] = []
    for event in events:
        if isinstance(event, Stepped):
            steps.append(event.step)
        elif isinstance(event, Resumed) and steps:
            steps[-1] = broken_off(steps[-1])
    return tuple(steps)


def known_usage(events: Sequence[Event]) -> Usage:
    """What both agents' models used, as far as it is known."""
    total = Usage()
    for event in events:
        match event:
            case Decided(decision=Decision(usage=usage)) | Spent(usage=usage):
                total += usage.known
            case Stepped(ideator_usage=usage):
                total += usage.known
    return total


def _since_resumed(events: Sequence[Event]) -> Sequence[Event]:
    resumed = [place for place, event in enumerate(events) if isinstance(event, Resumed)]
    return events[resumed[-1] :] if resumed else events


def _spent(events: Sequence[Event]) -> Usage:
    return sum((event.usage for event in events if isinstance(event, Spent)), Usage())


class Best(Value, frozen=True, kw_only=True):
    """The final solution in numbers; `None` where unscored or where there is none."""

    validation: float | None = None
    public: float | None = None
    private: float | None = None
    solution: str | None = None
    """Its file."""


class Baseline(Value, frozen=True, kw_only=True):
    """The trivial solution's scores."""

    validation: float | None = None
    public: float | None = None
    private: float | None = None


class Summary(Value, frozen=True, kw_only=True):
    """What `run --json` prints and `summary.json` holds. Scripts rely on these keys."""

    run: str
    task: str
    outcome: Outcome | None
    steps: int
    help_requests: int
    best: Best
    baseline: Baseline
    improvements: int
    usage: dict[str, Usage]
    duration_s: float
    reproduced: bool
    """Was the final solution run again in a clean sandbox, with a valid submission?"""
    warnings: tuple[str, ...] = ()


def summarise(run: Path, record: Record) -> Summary:
    """A record in the numbers that people compare."""
    final, rerun = record.final, record.reproduced
    scores = rerun.scores if rerun else final.scores if final else Scores()
    file = str(run / SOLUTION) if final else None
    return Summary(
        run=str(run),
        task=record.started.task.id,
        outcome=record.ended.outcome if record.ended else None,
        steps=len(record.steps),
        help_requests=record.help_requests,
        best=Best(**_numbers(scores), solution=file),
        baseline=Baseline(**_numbers(record.started.task.baseline)),
        improvements=len(record.improved),
        usage={"implementer": record.implementer_usage, "ideator": record.ideator_usage},
        duration_s=round(record.at_s, 3),
        reproduced=rerun is not None,
        warnings=record.warnings,
    )


def _numbers(scores: Scores) -> dict[str, float | None]:
    named = {"validation": scores.validation, "public": scores.public, "private": scores.private}
    return {name: score.value if score else None for name, score in named.items()}


def write_results(run: Path, record: Record) -> Summary:
    """Put the final solution, its submission and the summary into the run folder."""
    final = record.final
    if final:
        kept = run / ("rerun" if record.reproduced else "solutions") / f"{final.number:03d}"
        for name in (SOLUTION, SUBMISSION):
            replace_file(run / name, (kept / name).read_bytes())
    summary = summarise(run, record)
    text = msgspec.json.format(msgspec.json.encode(summary), indent=2)
    replace_file(run / SUMMARY, text + b"\n")
    return summary
