"""Scores compare better, not larger; values are read strictly; ideas say what they revert to."""

import msgspec
import pytest

from mle_ideator.types import Action, Execute, Finish, Idea, Metric, Score, Step, Usage


@pytest.mark.parametrize(
    ("new", "old", "higher", "min_delta", "better"),
    [
        (0.9, 0.8, True, 0.0, True),
        (0.8, 0.9, True, 0.0, False),
        (0.8, 0.9, False, 0.0, True),
        (0.9, 0.9, True, 0.0, False),
        (0.9003, 0.9, True, 0.001, False),
        (0.902, 0.9, True, 0.001, True),
        (-2.0, -1.0, False, 0.5, True),
    ],
)
def test_better_than_knows_direction_and_least_gain(new, old, higher, min_delta, better):
    assert Score(new, higher).better_than(Score(old, higher), min_delta) is better


def test_any_score_is_better_than_none():
    assert Score(-1e9, True).better_than(None)


def test_unscored_stays_none_and_zero_stays_zero():
    metric = Metric("rmse", higher_is_better=False)
    assert metric.score(None) is None
    assert metric.score(0.0) == Score(0.0, False)


@pytest.mark.parametrize(
    ("analysis", "number"),
    [
        ("Revert to #3: the encodings leak.", 3),
        ("revert to solution 12, since", 12),
        ("Revert to # 7: it was better.", 7),
        ("Revert to" + " " * 100_000 + "x", None),
        ("Revert to #" + "9" * 5000, None),
        ("**Revert to #7** because", 7),
        ("Reverting to #2.", 2),
        ("Refine: do not revert to #3.", None),
        ("Refine the current solution", None),
        ("", None),
    ],
)
def test_an_idea_says_which_solution_it_reverts_to(analysis, number):
    assert Idea(analysis, "a", "r").reverts_to == number


def test_missing_usage_is_unknown_not_zero():
    total = Usage(calls=1, input_tokens=10, output_tokens=2, cost_usd=0.1) + Usage(
        calls=1, input_tokens=None, output_tokens=3, cost_usd=None
    )
    assert total == Usage(calls=2, input_tokens=None, output_tokens=5, cost_usd=None)


def test_actions_survive_json():
    for action in (Execute("bash", "echo \N{SNOWMAN}"), Finish("done")):
        assert msgspec.json.decode(msgspec.json.encode(action), type=Action) == action


def test_unknown_fields_are_refused():
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.json.decode(b'{"number": 1, "surprise": 2}', type=Step)


def test_values_do_not_change():
    with pytest.raises(AttributeError):
        Score(1.0, True).value = 2.0


@pytest.mark.parametrize("field", ["calls", "input_tokens", "cost_usd", "waited_s"])
@pytest.mark.parametrize("value", [-1, float("nan")])
def test_usage_is_never_negative(field, value):
    with pytest.raises(ValueError, match="negative"):
        Usage(**{field: value})
