"""GradeReport: all that can be said of one submission, in mle-bench's words where it has them."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from mle_ideator.benchmarks.leaderboards import MEDALS, Leaderboard, Medal
from mle_ideator.benchmarks.sources import leaderboard_of, load_task
from mle_ideator.types import Grade, Problem, Score, Task, Value


class GradeReport(Value, frozen=True, kw_only=True):
    """A submission's worth. The fields up to `submission_path` are mle-bench's, with its meanings.

    What a leaderboard would tell is `None` where the task has none.
    """

    competition_id: str
    """The task's id."""
    score: float | None
    """The private score; `None` if the submission is not valid or the metric has no value."""
    gold_threshold: float | None
    silver_threshold: float | None
    bronze_threshold: float | None
    median_threshold: float | None
    any_medal: bool | None
    gold_medal: bool | None
    silver_medal: bool | None
    bronze_medal: bool | None
    """At most one of these: the best medal that is earned."""
    above_median: bool | None
    submission_exists: bool
    valid_submission: bool
    is_lower_better: bool
    created_at: str
    """ISO 8601."""
    submission_path: str

    metric: str
    public_score: float | None
    """On the part of the answers that may guide."""
    baseline_score: float | None
    """The trivial solution's private score."""
    baseline_public_score: float | None
    medal: Medal | None
    human_rank: float | None
    """1 − the share of the leaderboard that is strictly better."""
    leaderboard_entries: int | None
    leaderboard_of_people: bool | None
    """Did people get its scores? Else they are reference solutions'."""
    problems: tuple[Problem, ...]
    """Why the submission is not valid."""
    remarks: tuple[Problem, ...]
    """What was odd, and accepted."""


def grade_report(task_spec: str, submission: Path, time: datetime) -> GradeReport:
    """Grade one file on a task, as `--task` names it; `time` is when.

    Raises `TaskError` for a task that can not be had, and `GradingError` if the grader is broken;
    never for the submission.
    """
    task, grader = load_task(task_spec)
    grade = grader.grade(submission)
    return _reported(task, grade, leaderboard_of(task_spec), submission, time)


def _reported(
    task: Task, grade: Grade, board: Leaderboard | None, submission: Path, time: datetime
) -> GradeReport:
    return GradeReport(
        competition_id=task.id,
        score=_value(grade.private),
        submission_exists=submission.exists() or submission.is_symlink(),
        valid_submission=grade.valid,
        is_lower_better=not task.metric.higher_is_better,
        created_at=time.isoformat(),
        submission_path=str(submission),
        metric=task.metric.name,
        public_score=_value(grade.public),
        baseline_score=_value(task.baseline.private),
        baseline_public_score=_value(task.baseline.public),
        problems=grade.problems,
        remarks=grade.remarks,
        **(_standing(board, grade.private) if board else dict.fromkeys(_STANDING)),
    )


def _standing(board: Leaderboard, score: Score | None) -> dict[str, Any]:
    """What a leaderboard tells."""
    medal = board.medal(score)
    return {
        **{f"{each}_threshold": board.threshold(each) for each in MEDALS},
        "median_threshold": board.median,
        "any_medal": medal is not None,
        **{f"{each}_medal": medal == each for each in MEDALS},
        "above_median": board.above_median(score),
        "medal": medal,
        "human_rank": board.human_rank(score),
        "leaderboard_entries": len(board.scores),
        "leaderboard_of_people": board.people,
    }


_STANDING = (
    *(f"{each}_{what}" for each in MEDALS for what in ("threshold", "medal")),
    *("median_threshold", "any_medal", "above_median", "medal", "human_rank"),
    *("leaderboard_entries", "leaderboard_of_people"),
)


def _value(score: Score | None) -> float | None:
    return None if score is None else score.value
