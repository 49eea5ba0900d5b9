"""One graded submission in the form of mle-bench's own reports, to be compared with those."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from mle_ideator.benchmarks.leaderboards import Rule
from mle_ideator.benchmarks.mlebench.competitions import find_competition
from mle_ideator.benchmarks.mlebench.declaring import board_of, metric_of
from mle_ideator.benchmarks.mlebench.grader import CompetitionGrader
from mle_ideator.errors import TaskError
from mle_ideator.types import Problem, Value

_DECIMALS = 5


class CompetitionReport(Value, frozen=True, kw_only=True):
    """mle-bench's fields, and what was wrong with the submission."""

    competition_id: str
    score: float | None
    gold_threshold: float
    silver_threshold: float
    bronze_threshold: float
    median_threshold: float
    any_medal: bool
    gold_medal: bool
    silver_medal: bool
    bronze_medal: bool
    above_median: bool
    submission_exists: bool
    valid_submission: bool
    is_lower_better: bool
    created_at: str
    submission_path: str
    problems: tuple[Problem, ...] = ()


def report(path: str, submission: Path, rule: Rule = "mlebench") -> CompetitionReport:
    """Grade a submission to the competition `DATA/ID`.

    The score is rounded to five decimals by the rule `mlebench`. Raises `TaskError` without a
    leaderboard, and `GradingError` if the grader is broken.
    """
    competition = find_competition(path)
    board, metric = board_of(competition, rule), metric_of(competition)
    if board is None:
        raise TaskError(f"{competition.id} has no leaderboard.csv, so there is nothing to report")
    grade = CompetitionGrader(competition, metric, rule).grade(submission)
    medal, score = board.medal(grade.private), grade.private.value if grade.private else None
    if score is not None and rule == "mlebench":
        score = round(score, _DECIMALS)
    return CompetitionReport(
        competition_id=competition.id,
        score=score,
        gold_threshold=board.threshold("gold"),
        silver_threshold=board.threshold("silver"),
        bronze_threshold=board.threshold("bronze"),
        median_threshold=board.median,
        any_medal=medal is not None,
        gold_medal=medal == "gold",
        silver_medal=medal == "silver",
        bronze_medal=medal == "bronze",
        above_median=board.above_median(grade.private),
        submission_exists=submission.is_file(),
        valid_submission=grade.valid,
        is_lower_better=not metric.higher_is_better,
        created_at=datetime.now().astimezone().isoformat(timespec="seconds"),
        submission_path=str(submission),
        problems=grade.problems,
    )
