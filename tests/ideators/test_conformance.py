"""What every ideator owes, whoever wrote it: run on all that are registered."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mle_ideator.protocols import Ideator
from mle_ideator.recipes import Column
from mle_ideator.registry import create, registered
from mle_ideator.types import Idea, Proposal

FOREIGN = """import pandas as pd
from sklearn.ensemble import RandomForestRegressor
model = RandomForestRegressor(random_state=0)
"""
SPECS = sorted({*registered("ideators"), "mle_ideator.ideators.random_operation:RandomIdeator"})


@pytest.fixture(params=SPECS)
def ideator(request, tmp_path: Path) -> Ideator:
    spec = request.param
    if spec == "fixed":
        file = tmp_path / "ideas.json"
        idea = {"analysis": "Refine: go on.", "action": "Use ratios.", "rationale": "It may help."}
        file.write_text(json.dumps([idea]))
        spec = f"fixed:{file}"
    return create("ideators", spec)


@pytest.fixture(params=["empty", "profile-less", "foreign code", "usual", "astray", "no score"])
def state(request, story, task, profile, code):
    numbers = [Column(name=f"x{i}", kind="number", levels=99, missing=0.0) for i in range(3)]
    usual = story(task(), profile(*numbers)).solved(code("model_linear"), 0.9)
    match request.param:
        case "empty":
            told = story(task())
            told.steps.clear()
        case "profile-less":
            told = story(task()).solved(code("model_linear"), 0.9)
        case "foreign code":
            told = story(task(), profile(*numbers)).solved(FOREIGN, 0.9)
        case "astray":
            told = usual.idea("Use ratios.").solved(code("model_linear", "ratios"), 1.9)
        case "no score":
            told = story(task(), profile(*numbers)).solved(FOREIGN, None)
        case _:
            told = usual
    return told.state()


def is_well_formed(idea: Idea) -> bool:
    opening = re.match(r"(refine\b|revert to #\d+\b)", idea.analysis, re.IGNORECASE)
    return bool(opening and idea.action.strip() and idea.rationale.strip())


async def test_proposes_a_well_formed_idea_or_says_why_not(ideator, state):
    proposal = await ideator.propose(state)
    assert isinstance(proposal, Proposal)
    assert proposal.reason.strip() if proposal.idea is None else is_well_formed(proposal.idea)


async def test_goes_back_only_to_solutions_that_exist(ideator, state):
    idea = (await ideator.propose(state)).idea
    numbers = {solution.number for solution in state.situation.solutions}
    assert idea is None or idea.reverts_to is None or idea.reverts_to in numbers


async def test_is_deterministic(ideator, state):
    assert await ideator.propose(state) == await ideator.propose(state)


async def test_is_an_ideator(ideator):
    assert isinstance(ideator, Ideator)


async def test_interleaved_sessions_do_not_disturb_each_other(ideator, story, task, profile, code):
    """Two sessions asked in turn get what each would have got alone."""
    number = Column(name="x", kind="number", levels=99, missing=0.0)
    one = story(task(), profile(number)).solved(code("model_linear"), 0.9)
    two = story(task("accuracy", True, prediction="label", type="image-classification"))
    states = [one.state(), two.state()]
    one.idea("Use ratios.").solved(code("model_linear", "ratios"), 0.8)
    two.idea("Use a random forest.").cell("boom", "error")
    states += [one.state(), two.state()]
    mixed = [await ideator.propose(state) for state in states]
    alone = [await ideator.propose(state) for state in (states[0], states[2])]
    assert [mixed[0], mixed[2]] == alone
    assert mixed[3] == await ideator.propose(states[3])


async def test_survives_the_journal(ideator, state):
    """A state read back from JSON brings the same answer."""
    import msgspec

    again = msgspec.json.decode(msgspec.json.encode(state), type=type(state))
    assert await ideator.propose(again) == await ideator.propose(state)
