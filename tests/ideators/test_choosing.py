"""One of several candidates: drawn at once, merged, voted on or ranked, within the money."""

from __future__ import annotations

import msgspec
import pytest

from mle_ideator.chat.calls import CallFailed
from mle_ideator.chat.prices import Price
from mle_ideator.errors import OutOfBudget
from mle_ideator.ideators.prompted.choosing import merged, ranked, read_choice
from mle_ideator.recipes import Column
from mle_ideator.registry import create
from mle_ideator.types import Idea
from tests.ideators.models import SCRIPTS, Desk, cut_off, idea_text, ideator_at

A, B, C = (idea_text(f"Use {name}.") for name in ("ratios", "a random forest", "log1p"))


@pytest.fixture
def told(story, task, profile, code):
    numbers = [Column(name=f"x{i}", kind="number", levels=500) for i in range(3)]
    return story(task(), profile(*numbers)).solved(code("model_linear"), 0.9)


@pytest.fixture
def state(told):
    return told.state()


async def test_candidates_are_drawn_warmly_and_each_with_its_own_seed(state):
    desk = Desk(A, B, C, "<choice>1</choice>")
    await ideator_at(desk, ideas=3).propose(state)
    options = [options for _, options in desk.asked[:3]]
    assert {o.temperature for o in options} == {0.8}
    assert [o.seed for o in options] == [0, 1, 2]
    assert desk.asked[0][0] == desk.asked[2][0]
    assert desk.asked[0][0][-1].stable


async def test_a_given_temperature_wins(state):
    desk = Desk(A, B, "<choice>1</choice>")
    await ideator_at(desk, ideas=2, temperature=0.0).propose(state)
    assert desk.asked[0][1].temperature == 0.0


async def test_the_model_votes(state):
    """Each ballot lists the ideas from another one on: 2, then 1 of (B, C, A), then 3 of (C, …)."""
    desk = Desk(A, B, C, "<choice>2</choice>", "<choice>1</choice>", "<choice>3</choice>")
    proposal = await ideator_at(desk, ideas=3).propose(state)
    assert proposal.idea.action == "Use a random forest."
    assert proposal.usage.calls == 6
    assert proposal.usage.input_tokens == 600
    ballots = [messages[-1].text for messages, _ in desk.asked[3:]]
    assert "1. Refine: go on.\n   Action: Use ratios." in ballots[0]
    assert "1. Refine: go on.\n   Action: Use a random forest." in ballots[1]
    assert desk.asked[3][0][:-1] == desk.asked[0][0]
    assert desk.asked[3][1].stop == ("</choice>",)


async def test_ties_go_to_the_earlier_one(state):
    votes = ("<choice>2</choice>", "<choice>2</choice>")  # the second, then the first
    proposal = await ideator_at(Desk(A, B, *votes), ideas=2, ballots=2).propose(state)
    assert proposal.idea.action == "Use ratios."


@pytest.mark.parametrize(
    "ballot",
    [
        "I like the second.",
        "<choice>7</choice>",
        "<choice>1</choice><choice>2</choice>",
        cut_off("<choice>2</choice>"),
        CallFailed("broken", "gone"),
        CallFailed("overflow", "too long"),
    ],
)
async def test_without_a_vote_that_counts_the_first_one_is_taken(state, ballot):
    proposal = await ideator_at(Desk(A, B, ballot), ideas=2).propose(state)
    assert proposal.idea.action == "Use ratios."
    answered = 0 if isinstance(ballot, CallFailed) else 3
    assert proposal.usage.calls == 2 + answered


@pytest.mark.parametrize("others", [("x", "x", "x", "x"), (A, A), (A, A.replace("Use", "use"))])
async def test_of_one_there_is_no_vote(state, others):
    proposal = await ideator_at(Desk(A, *others), ideas=3, ballots=1).propose(state)
    assert proposal.idea.action == "Use ratios."
    assert proposal.usage.calls == 1 + len(others)


async def test_none_of_several_is_told(state):
    proposal = await ideator_at(Desk("x"), ideas=3).propose(state)
    assert proposal.malformed
    assert proposal.usage.calls == 6


async def test_a_candidate_that_can_not_be_asked_for_does_not_matter(state):
    desk = Desk(CallFailed("broken", "gone"), A)
    proposal = await ideator_at(desk, ideas=2).propose(state)
    assert proposal.idea.action == "Use ratios."


async def test_a_recorded_choice(state):
    options = {"ideas": 4, "ballots": 3}
    ideator = create("ideators", f"scripted:{SCRIPTS / 'candidates.yaml'}", options)
    proposal = await ideator.propose(state)
    assert proposal.idea.action == "Use gradient boosting."
    assert proposal.usage.calls == 8


# ------------------------------------------------------------------------------------ money


def with_money(state, cost_usd: float):
    remaining = msgspec.structs.replace(state.situation.remaining, cost_usd=cost_usd)
    situation = msgspec.structs.replace(state.situation, remaining=remaining)
    return msgspec.structs.replace(state, situation=situation)


async def test_candidates_and_ballots_share_what_is_left(state):
    desk = Desk(A, B, "<choice>1</choice>")
    await ideator_at(desk, ideas=2, ballots=4).propose(with_money(state, 1.0))
    caps = [options.max_cost_usd for _, options in desk.asked]
    assert caps == pytest.approx([0.5] * 2 + [0.98 / 4] * 4)


async def test_where_the_money_is_short_for_all_one_is_asked_for(state):
    desk = Desk(A)
    desk.price = Price(input=0.0, output=1000.0)
    ideator = ideator_at(desk, ideas=3, max_output_tokens=100)
    assert (await ideator.propose(with_money(state, 0.15))).idea
    assert len(desk.asked) == 1
    with pytest.raises(OutOfBudget):
        await ideator.propose(with_money(state, 0.05))


# ------------------------------------------------------------------------- parts of choosing


def test_merged():
    one = Idea("Refine: a", "Use ratios.", "r")
    same = Idea("Refine: b", "use  Ratios", "s")
    back = Idea("Revert to #1: a", "Use ratios.", "r")
    assert merged([one, same, back]) == [one, back]


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("<choice>2</choice>", 1),
        ("The second.\n<CHOICE> #2 ", 1),
        ("<choice>2</choice> indeed <choice>2</choice>", 1),
        ("<choice>0</choice>", None),
        ("<choice>3</choice>", None),
        ("<choice>two</choice>", None),
        ("2", None),
        ("", None),
        ("<choice>1 or 2</choice>", None),
    ],
)
def test_read_choice(text, choice):
    assert read_choice(text, 2) == choice


def of(action: str) -> Idea:
    return Idea("Refine: go on.", action, "r")


async def test_the_ranker_takes_what_promises_most_without_a_call(state):
    desk = Desk(*(idea_text(f"Use {name}.") for name in ("gradient boosting", "more", "ratios")))
    proposal = await ideator_at(desk, ideas=3, choose="ranker").propose(state)
    assert proposal.idea.action == "Use gradient boosting."
    assert proposal.usage.calls == 3


def test_the_ranker_puts_the_unknown_above_what_is_ruled_out(told):
    told.idea("Use ratios of columns.").cell("boom", "error")
    failed, unknown, good = of("Use ratios."), of("Ask a friend."), of("Use gradient boosting.")
    assert ranked(told.state(), [failed, unknown]) == unknown
    assert ranked(told.state(), [failed, unknown, good]) == good
    assert ranked(told.state(), [unknown, of("Ask two friends.")]) == unknown


def test_the_ranker_is_not_impressed_by_a_list(state):
    good = of("Use gradient boosting.")
    much = of("Use gradient boosting, clip predictions, PCA, bag seeds and stacking.")
    assert ranked(state, [much, good]) == good
