"""The reward of each idea: exact values."""

from __future__ import annotations

import pytest

from mle_ideator.idea_form import well_formed
from mle_ideator.rl.reward import REWARDS, idea_rewards
from mle_ideator.types import (
    Execute,
    HelpRequest,
    Idea,
    Metric,
    Observation,
    Scores,
    SeekHelp,
    Solution,
    Step,
)

GOOD = Idea("Refine: go on.", "Use ratios.", "They help.")
NO_IDEA = None


class Recorded:
    """A recorded session, written down step by step."""

    def __init__(self, higher: bool = False) -> None:
        self.metric = Metric("m", higher)
        self.steps: list[Step] = []
        self.solutions: list[Solution] = []

    def cell(self, status="ok", solution=None):
        return self._step(Execute("python", "..."), status, None, solution)

    def solved(self, public, validation=None, status="ok"):
        number = len(self.solutions) + 1
        scores = Scores(self.metric.score(validation), self.metric.score(public))
        self.solutions.append(
            Solution(number=number, step=len(self.steps) + 1, code="", scores=scores, digest="")
        )
        return self.cell(status, number)

    def asked(self, idea=GOOD, status=None):
        status = status or ("idea" if idea else "no_idea")
        return self._step(SeekHelp(HelpRequest("p", "a", "g")), status, idea, None)

    def _step(self, action, status, idea, solution):
        self.steps.append(
            Step(
                number=len(self.steps) + 1,
                action=action,
                observation=Observation(text="", status=status),
                idea=idea,
                solution=solution,
            )
        )
        return self

    def outcomes(self, min_delta=0.0):
        rewards = idea_rewards(self.steps, self.solutions, min_delta)
        return [(r.step, r.outcome, r.reward) for r in rewards]


def test_improved_is_one():
    session = Recorded().solved(1.0).asked().solved(0.9)
    assert session.outcomes() == [(2, "improved", 1.0)]


def test_not_improved_is_zero():
    assert Recorded().solved(1.0).asked().solved(1.0).outcomes() == [(2, "not_improved", 0.0)]
    assert Recorded().solved(1.0).asked().solved(1.1).outcomes() == [(2, "not_improved", 0.0)]


def test_the_metrics_direction_decides():
    assert Recorded(True).solved(0.5).asked().solved(0.6).outcomes() == [(2, "improved", 1.0)]
    assert Recorded(True).solved(0.5).asked().solved(0.4).outcomes() == [(2, "not_improved", 0.0)]


@pytest.mark.parametrize(
    ("gain", "outcome"), [(0.25, "not_improved"), (0.1, "not_improved"), (0.5, "improved")]
)
def test_a_gain_must_be_more_than_the_least_delta(gain, outcome):
    session = Recorded(True).solved(0.25).asked().solved(0.25 + gain)
    assert session.outcomes(min_delta=0.25)[0][1] == outcome


def test_an_idea_is_measured_against_the_best_so_far_not_the_last():
    session = Recorded().solved(1.0).solved(2.0).asked().solved(1.5)
    assert session.outcomes() == [(3, "not_improved", 0.0)]


def test_only_the_first_solution_counts():
    """The second one is the implementer's own improvement."""
    session = Recorded().solved(1.0).asked().solved(1.1).solved(0.5)
    assert session.outcomes() == [(2, "not_improved", 0.0)]


def test_a_later_idea_does_not_earn_for_an_earlier_one():
    session = Recorded().solved(1.0).asked().cell("error").asked().solved(0.5)
    assert session.outcomes() == [(2, "exec_failed", 0.0), (4, "improved", 1.0)]


def test_a_mended_failure_is_no_failure():
    session = Recorded().solved(1.0).asked().cell("error").solved(0.5)
    assert session.outcomes() == [(2, "improved", 1.0)]


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        ("error", "exec_failed"),
        ("died", "exec_failed"),
        ("ok", "exec_failed"),
        ("timeout", "timeout"),
    ],
)
def test_no_solution_afterwards(status, outcome):
    session = Recorded().solved(1.0).asked().cell(status)
    assert session.outcomes() == [(2, outcome, 0.0)]


def test_an_idea_that_was_never_tried_is_masked():
    assert Recorded().solved(1.0).asked().outcomes() == [(2, "infra_error", None)]


def test_an_answer_without_a_well_formed_idea_is_invalid():
    session = Recorded().solved(1.0).asked(NO_IDEA, "malformed_idea").solved(0.5)
    assert session.outcomes() == [(2, "invalid_format", -1.0)]


def test_an_ideator_that_declines_earns_nothing_by_what_follows():
    session = Recorded().solved(1.0).asked(NO_IDEA).solved(0.5)
    assert session.outcomes() == [(2, "not_improved", 0.0)]


def test_a_request_that_the_runtime_refused_is_masked():
    session = Recorded().solved(1.0).asked(NO_IDEA, "told").solved(0.5)
    assert session.outcomes() == [(2, "infra_error", None)]


def test_a_malformed_idea_earns_minus_one_whatever_follows():
    session = Recorded().solved(1.0).asked(Idea("Maybe.", "Use ratios.", "r")).solved(0.5)
    assert session.outcomes() == [(2, "invalid_format", -1.0)]


def test_the_first_scored_solution_improves_on_none():
    assert Recorded().asked().solved(5.0).outcomes() == [(1, "improved", 1.0)]


def test_an_unscored_solution_improves_on_nothing():
    assert Recorded().asked().solved(None).outcomes() == [(1, "not_improved", 0.0)]


def test_public_scores_rule_where_all_solutions_have_one():
    session = Recorded().solved(1.0, validation=1.0).asked().solved(0.9, validation=2.0)
    assert session.outcomes() == [(2, "improved", 1.0)]


def test_validation_and_public_scores_are_never_mixed():
    session = Recorded().solved(9.0, validation=1.0).asked().solved(None, validation=2.0)
    assert session.outcomes() == [(2, "not_improved", 0.0)]


def test_private_scores_are_never_used():
    session = Recorded().solved(None).asked().solved(None)
    better = Scores(private=session.metric.score(0.0))
    import msgspec

    session.solutions[1] = msgspec.structs.replace(session.solutions[1], scores=better)
    assert session.outcomes() == [(2, "not_improved", 0.0)]


def test_nothing_recorded_nothing_earned():
    assert idea_rewards([], []) == []
    assert Recorded().solved(1.0).outcomes() == []


def test_the_idea_is_handed_back():
    session = Recorded().solved(1.0).asked().solved(0.9)
    assert idea_rewards(session.steps, session.solutions)[0].idea == GOOD


def test_rewards_are_those_of_the_paper():
    assert REWARDS == {
        "improved": 1,
        "not_improved": 0,
        "exec_failed": 0,
        "timeout": 0,
        "invalid_format": -1,
        "infra_error": None,
    }


@pytest.mark.parametrize(
    ("idea", "expected"),
    [
        (GOOD, True),
        (Idea("Refining the model: a", "b", "c"), True),
        (Idea("**Refine**: a", "b", "c"), True),
        (Idea("Revert to #2: a", "b", "c"), True),
        (Idea("revert to solution 2, since", "b", "c"), True),
        (Idea("Revert: a", "b", "c"), False),
        (Idea("Refinery: a", "b", "c"), False),
        (Idea("Let us see", "b", "c"), False),
        (Idea("", "b", "c"), False),
        (Idea("Refine: a", " ", "c"), False),
        (Idea("Refine: a", "b", "\n"), False),
    ],
)
def test_well_formed(idea, expected):
    assert well_formed(idea) is expected
