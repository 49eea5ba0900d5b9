"""The report on one submission: scores, thresholds, medals, in mle-bench's field names."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pandas as pd
import pytest

from mle_ideator.benchmarks.grading.report import GradeReport, grade_report
from mle_ideator.benchmarks.sources import load_task
from mle_ideator.errors import TaskError

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
BOARD = (0.9, 0.9, 0.8, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)

TASK = """
title: Longest lives
type: survival
split: test
metric: c_index
higher_is_better: true
prediction: value
targets: [time]
event: died
rows: [20, 12]
origin: made up
licence: CC0
"""
BUILD = """
import pandas as pd
from mle_ideator.benchmarks.building import Frames

def build(root, rng):
    frame = pd.DataFrame({"x": range(32), "time": range(1, 33), "died": [1, 1, 1, 0] * 8})
    return Frames(frame.iloc[:20], frame.iloc[20:])
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("tasks") / "longest_lives"
    made.mkdir()
    (made / "task.yaml").write_text(TASK)
    (made / "build.py").write_text(BUILD)
    (made / "description.md").write_text("# Longest lives")
    rows = "".join(f"r{i},{score},{score}\n" for i, score in enumerate(BOARD))
    (made / "leaderboard.csv").write_text(f"reference,public,private\n{rows}")
    return made


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("MLE_IDEATOR_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


def reported(folder: Path, tmp_path: Path, sign: int) -> GradeReport:
    """Of the test rows' own feature, or its negative, as prediction."""
    task, _ = load_task(str(folder))
    test = pd.read_csv(Path(task.inputs) / "test.csv")
    assert list(test) == ["id", "x"]
    submission = tmp_path / "mine.csv"
    test.assign(time=sign * test.x)[["id", "time"]].to_csv(submission, index=False)
    return grade_report(str(folder), submission, NOW)


def test_a_perfect_submission(folder, tmp_path):
    report = reported(folder, tmp_path, 1)
    assert (report.score, report.public_score, report.medal) == (1, 1, "gold")
    assert (report.baseline_score, report.baseline_public_score) == (0.5, 0.5)
    assert (report.human_rank, report.above_median) == (1, True)
    assert (report.gold_medal, report.silver_medal, report.bronze_medal) == (True, False, False)
    assert (report.leaderboard_entries, report.leaderboard_of_people) == (10, False)


def test_mle_benchs_fields_come_first_and_are_json(folder, tmp_path):
    report = reported(folder, tmp_path, -1)
    values = msgspec.json.decode(msgspec.json.encode(report))
    assert list(values)[:16] == [
        *("competition_id", "score", "gold_threshold", "silver_threshold", "bronze_threshold"),
        *("median_threshold", "any_medal", "gold_medal", "silver_medal", "bronze_medal"),
        *("above_median", "submission_exists", "valid_submission", "is_lower_better"),
        *("created_at", "submission_path"),
    ]
    assert list(values.values())[:16] == [
        *("longest-lives", 0.0, 0.9, 0.9, 0.8, pytest.approx(0.65)),
        *(False, False, False, False, False, True, True, False),
        *("2026-01-02T03:04:05+00:00", str(tmp_path / "mine.csv")),
    ]
    assert msgspec.convert(values, GradeReport) == report


def test_what_is_not_valid_has_problems_and_no_score(folder, tmp_path):
    submission = tmp_path / "s.csv"
    submission.write_text("id,time\n1,2\n")
    report = grade_report(str(folder), submission, NOW)
    assert (report.valid_submission, report.submission_exists) == (False, True)
    assert [p.code for p in report.problems] == ["missing_ids", "extra_ids"]
    assert (report.score, report.human_rank, report.any_medal) == (None, 0, False)
    assert report.gold_threshold == 0.9


def test_a_file_that_is_not_there(folder, tmp_path):
    report = grade_report(str(folder), tmp_path / "s.csv", NOW)
    assert (report.valid_submission, report.submission_exists) == (False, False)
    assert [p.code for p in report.problems] == ["no_file"]


def test_without_a_leaderboard_nothing_is_said_of_ranks(folder, tmp_path):
    board = folder / "leaderboard.csv"
    kept = board.read_bytes()
    board.unlink()
    try:
        report = reported(folder, tmp_path, 1)
    finally:
        board.write_bytes(kept)
    assert report.score == 1
    assert {report.gold_threshold, report.any_medal, report.above_median, report.human_rank} == {
        None
    }


def test_an_unknown_task(tmp_path):
    with pytest.raises(TaskError, match="unknown task 'flights-latte'; did you mean"):
        grade_report("flights-latte", tmp_path / "s.csv", NOW)
