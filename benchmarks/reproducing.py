"""A recorded solution, run again by itself, and how what it did compares with the record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from mle_ideator import __version__
from mle_ideator.alone import Alone, run_alone
from mle_ideator.benchmarks.reopening import RELATIVE_TOLERANCE, close
from mle_ideator.benchmarks.submissions import Compared, compare_submissions
from mle_ideator.errors import UsageError
from mle_ideator.files import read_regular
from mle_ideator.results import Record
from mle_ideator.setups import Place
from mle_ideator.solutions import MAX_CODE, SOLUTION, SUBMISSION
from mle_ideator.types import SandboxInfo, Score, Scores, Solution, Value


class ScorePair(Value, frozen=True, kw_only=True):
    """One score as recorded, and as it is now."""

    recorded: float | None
    now: float | None
    verdict: Literal["exact", "close", "differs", "missing", "not recorded"]
    """To the last digit; within the tolerance; beyond it; unscored now; nothing to compare."""


class Change(Value, frozen=True, kw_only=True):
    """Something of the surroundings that is not as recorded; `None` where it is not there."""

    what: str
    recorded: str | None
    now: str | None


class Reproduction(Value, frozen=True, kw_only=True):
    """What `reproduce --json` prints. Scripts rely on these keys."""

    run: str
    task: str
    solution: int
    reproduced: bool
    """It ran, its submission is valid, and each recorded score came again within the tolerance."""
    exact: bool
    """Each recorded score came again to the last digit."""
    failure: str
    """Why it wrote no valid submission; empty if it did."""
    scores: dict[str, ScorePair]
    relative_tolerance: float = RELATIVE_TOLERANCE
    min_delta: float
    """What the task counts as no difference, in the metric's unit."""
    submission: Compared | None
    """`None` if either is missing."""
    duration_s: float
    recorded_duration_s: float | None
    """Of the step that made it."""
    sandbox: str
    recorded_sandbox: str
    changes: tuple[Change, ...]
    remarks: tuple[str, ...]
    folder: str | None = None
    """What it wrote, if that is kept."""


@dataclass(frozen=True)
class Recorded:
    """A solution of a run, as its record and its folder have it."""

    run: Path
    record: Record
    solution: Solution
    """With the code as it lies in the folder."""
    scores: Scores
    """Of its clean re-run if that worked, else of the step that made it."""
    submission: Path
    untouched: bool
    """Is the code in the folder the recorded one?"""
    remarks: tuple[str, ...]


def find_solution(run: Path, record: Record, number: int | None = None) -> Recorded:
    """The final solution of a run, or another one. Raises `UsageError` if it is not there."""
    known = {solution.number: solution for solution in record.solutions}
    if not known:
        raise UsageError(f"{run} has no solution: no step of it wrote a valid submission.")
    if number is not None and number not in known:
        raise UsageError(f"the run has no solution {number}; it has {', '.join(map(str, known))}.")
    final = record.final
    if number is None and final is None:
        raise UsageError(f"{run} has no final solution; name one with --solution.")
    solution = known[number] if number is not None else final
    assert solution is not None  # noqa: S101 - told above
    rerun = next((r for r in record.reruns if r.reproduced and r.solution == solution.number), None)
    name = f"{solution.number:03d}"
    is_final = final is not None and solution.number == final.number
    script = run / SOLUTION if is_final else run / "solutions" / name / SOLUTION
    as_it_lies, remarks = _as_it_lies(solution, script)
    if record.ended is None and number is None:
        remarks.append("the run has not ended; this is its best solution so far.")
    return Recorded(
        run=run,
        record=record,
        solution=as_it_lies,
        scores=rerun.scores if rerun else solution.scores,
        submission=run / ("rerun" if rerun else "solutions") / name / SUBMISSION,
        untouched=as_it_lies == solution,
        remarks=tuple(remarks),
    )


def _as_it_lies(solution: Solution, script: Path) -> tuple[Solution, list[str]]:
    content = read_regular(script, MAX_CODE)
    if content is None:
        return solution, [f"{script} is missing; the recorded code was run."]
    code = content.decode("utf-8", errors="replace")
    if code == solution.code:
        return solution, []
    changed = msgspec.structs.replace(solution, code=code)
    return changed, [f"{script} is not the recorded code; it was run as it lies there."]


async def reproduce(
    recorded: Recorded,
    place: Place,
    kept: Path,
    seconds: float | None = None,
    remarks: Sequence[str] = (),
) -> Reproduction:
    """Run the solution alone and compare. What it writes lies in `kept` afterwards.

    `seconds` is the longest that it may take; without it, what the run's whole session had.
    `remarks` are what to know besides.
    """
    limit = place.config.limits.time_s if seconds is None else seconds
    alone = await run_alone(place, recorded.solution, kept, limit)
    again = alone.solution if not alone.detail else None
    scores = _score_pairs(recorded, again.scores if again else Scores())
    verdicts = {pair.verdict for pair in scores.values()} - {"not recorded"}
    alike = again is not None and verdicts <= {"exact", "close"}
    changes = _changes(recorded.record, alone.sandbox, place)
    submission = _compared(recorded, kept, place) if again else None
    started = recorded.record.started
    return Reproduction(
        run=str(recorded.run),
        task=started.task.id,
        solution=recorded.solution.number,
        reproduced=alike,
        exact=alike and "close" not in verdicts,
        failure=_failure(alone, limit),
        scores=scores,
        min_delta=started.task.min_delta,
        submission=submission,
        duration_s=round(alone.duration_s, 3),
        recorded_duration_s=_step_took(recorded),
        sandbox=alone.sandbox.kind,
        recorded_sandbox=started.sandbox.kind,
        changes=changes,
        remarks=(*recorded.remarks, *remarks, *_advice(recorded, alike, submission, changes)),
    )


def _failure(alone: Alone, limit: float) -> str:
    """Why it wrote no valid submission, for a person; what a sandbox adds speaks to agents."""
    if alone.status == "timeout":
        return f"it was stopped after {limit:g} s, the longest it may take; --time gives it more."
    return alone.detail


def _score_pairs(recorded: Recorded, now: Scores) -> dict[str, ScorePair]:
    least = recorded.record.started.task.min_delta
    pairs = {
        name: _pair(getattr(recorded.scores, name), getattr(now, name), least)
        for name in ("validation", "public", "private")
    }
    # A record without a private score shows none to people, and neither does this.
    return {k: pair for k, pair in pairs.items() if k != "private" or pair.recorded is not None}


def _pair(recorded: Score | None, now: Score | None, least: float) -> ScorePair:
    verdict: Literal["exact", "close", "differs", "missing", "not recorded"]
    if recorded is None:
        verdict = "not recorded"
    elif now is None:
        verdict = "missing"
    elif recorded.value == now.value:
        verdict = "exact"
    else:
        verdict = "close" if close(recorded, now, least) else "differs"
    values = (score.value if score else None for score in (recorded, now))
    return ScorePair(recorded=next(values), now=next(values), verdict=verdict)


def _compared(recorded: Recorded, kept: Path, place: Place) -> Compared | None:
    new = kept / f"{recorded.solution.number:03d}" / SUBMISSION
    before, after = (
        read_regular(path, place.grader.max_bytes) for path in (recorded.submission, new)
    )
    valid = before is not None and place.grader.grade(recorded.submission).valid
    if not valid or before is None or after is None:
        return None
    return compare_submissions(before, after, place.task)


def _step_took(recorded: Recorded) -> float | None:
    steps = (s for s in recorded.record.steps if s.number == recorded.solution.step)
    return next((round(step.observation.duration_s, 3) for step in steps), None)


def _changes(record: Record, now: SandboxInfo, place: Place) -> tuple[Change, ...]:
    """What of program, sandbox and libraries is not as recorded."""
    started, was = record.started, record.started.sandbox
    pairs: dict[str, tuple[str | None, str | None]] = {
        "mle-ideator": (started.version, __version__),
        "sandbox": (was.kind, now.kind),
        "python": (was.python, now.python),
    }
    if place.config.threads is None:
        pairs["cores"] = (str(was.cores), str(now.cores))
    pairs["gpus"] = (", ".join(was.gpus) or None, ", ".join(now.gpus) or None)
    for name in sorted(was.libraries.keys() | now.libraries.keys()):
        pairs[name] = (was.libraries.get(name), now.libraries.get(name))
    return tuple(
        Change(what=what, recorded=old, now=new) for what, (old, new) in pairs.items() if old != new
    )


def _advice(
    recorded: Recorded, alike: bool, submission: Compared | None, changes: tuple[Change, ...]
) -> list[str]:
    """What to do where the run is not what it was; `alike` tells of its scores."""
    if alike and (submission is None or submission.verdict != "differ"):
        return []
    if not recorded.untouched:
        return [f"put the recorded {SOLUTION} back to see whether that one reproduces."]
    advice = []
    if changes:
        what = ", ".join(change.what for change in changes[:5])
        advice.append(f"what differs from the record may be why ({what}): make it the same.")
    if submission and submission.verdict == "differ":
        why = "else" if changes else "nothing that is recorded differs, so"
        advice.append(
            f"{why} the solution is most likely random: give each model, split and sampler in it a "
            "fixed seed (random_state=0, numpy.random.default_rng(0))."
        )
    return advice
