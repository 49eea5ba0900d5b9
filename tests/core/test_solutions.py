"""What counts as a score, and which solution a policy prefers."""

import pytest

from mle_ideator.solutions import Workspace, beats, ranked, validation_score
from mle_ideator.types import Metric, Score, Scores, Solution

RMSE = Metric("rmse", higher_is_better=False)


def solution(number, validation=None, public=None, higher=True):
    def score(value):
        return None if value is None else Score(value, higher)

    scores = Scores(score(validation), score(public))
    return Solution(number=number, step=number, code="", scores=scores, digest="")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Validation score: 0.91", 0.91),
        ("fold 1\nvalidation score: 1\nValidation score: -2.5e-3\ndone", -0.0025),
        ("Validation score: .5 \r", 0.5),
        ("Invalidation score: 3", None),
        ("The Validation score: 3 of fold 2", None),
        ("Validation score: nan", None),
        ("Validation score: inf", None),
        ("Validation score: 1e999", None),
        ("Validation score: True", None),
        ("Validation score: 0.9 +- 0.1", None),
        ("", None),
    ],
)
def test_only_a_whole_line_with_a_finite_number_is_a_validation_score(text, value):
    score = validation_score(text, RMSE)
    assert (score.value if score else None) == value


def test_the_direction_decides():
    assert beats(solution(2, 0.9), solution(1, 0.8), "validation")
    assert not beats(solution(2, 0.9, higher=False), solution(1, 0.8, higher=False), "validation")


def test_an_unscored_solution_beats_only_none():
    assert beats(solution(1), None, "validation")
    assert not beats(solution(2), solution(1, 0.1), "validation")
    assert beats(solution(2, 0.1), solution(1), "validation")


def test_each_policy_ranks_by_its_own_score_and_the_earlier_among_equals():
    found = [solution(1, 0.5, 0.9), solution(2, 0.7, 0.1), solution(3, 0.7, 0.5), solution(4)]
    assert [s.number for s in ranked(found, "validation")] == [2, 3, 1, 4]
    assert [s.number for s in ranked(found, "public")] == [1, 3, 2, 4]
    assert [s.number for s in ranked(found, "last")] == [4, 3, 2, 1]


def test_a_file_is_new_once(tmp_path):
    (tmp_path / "submission.csv").write_text("was there before")
    workspace = Workspace(tmp_path)
    assert not workspace.submission_written()
    (tmp_path / "submission.csv").write_text("was there before")
    assert workspace.submission_written()
    assert not workspace.submission_written()
    (tmp_path / "submission.csv").unlink()
    assert not workspace.submission_written()
