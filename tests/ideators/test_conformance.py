"""What every ideator owes, whoever wrote it: run on all that are registered."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from mle_ideator.idea_form import well_formed
from mle_ideator.protocols import Ideator
from mle_ideator.recipes import Column
from mle_ideator.registry import create, registered
from mle_ideator.rl.training.proxy import Proxy
from mle_ideator.types import HelpState, Idea, Proposal
from tests.ideators.serving.conftest import Server
from tests.rl.training.made_world import world

FOREIGN = """import pandas as pd
from sklearn.ensemble import RandomForestRegressor
model = RandomForestRegressor(random_state=0)
"""
IDEA = {"analysis": "Refine: go on.", "action": "Use ratios.", "rationale": "It may help."}
DOTTED = "mle_ideator.ideators.random_operation:RandomIdeator"
SPECS = sorted({*registered("ideators"), DOTTED} - {"https"})
"""`https` is the class of `http`, and the server leaves TLS to a proxy."""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The offline ideator, hosted."""
    server = Server(tmp_path_factory.mktemp("server"), "--ideator", "offline")
    yield server
    server.close()


@pytest.fixture(scope="module")
def proxy(tmp_path_factory) -> Path:
    """A predictor of rewards, fitted and saved."""
    file = tmp_path_factory.mktemp("proxy") / "proxy.npz"
    Proxy.fit(world(180, tasks=3)).save(file)
    return file


@pytest.fixture
def typist(monkeypatch):
    """Somebody who types the same idea whenever there is a question."""
    source, sink = os.pipe()
    os.write(sink, "".join(f"{part}\n" for part in IDEA.values()).encode() * 20)
    os.close(sink)
    with os.fdopen(source) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield


@pytest.fixture(params=SPECS)
async def ideator(request, tmp_path: Path):
    spec = request.param
    match spec:
        case "fixed":
            (tmp_path / "ideas.json").write_text(json.dumps([IDEA]))
            spec = f"fixed:{tmp_path / 'ideas.json'}"
        case "prompted":
            (tmp_path / "replies.json").write_text(json.dumps([json.dumps(IDEA)]))
            spec = f"scripted:{tmp_path / 'replies.json'}"
        case "human":
            request.getfixturevalue("typist")
        case "proxy":
            spec = f"proxy:{request.getfixturevalue('proxy')}"
        case "http":
            spec = request.getfixturevalue("server").url
    found = create("ideators", spec)
    yield found
    if close := getattr(found, "aclose", None):
        await close()


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


async def said(ideator: Ideator, state: HelpState) -> tuple[Idea | None, str]:
    """What it answers, apart from how long that took."""
    proposal = await ideator.propose(state)
    return proposal.idea, proposal.reason


async def test_proposes_a_well_formed_idea_or_says_why_not(ideator, state):
    proposal = await ideator.propose(state)
    assert isinstance(proposal, Proposal)
    assert proposal.reason.strip() if proposal.idea is None else well_formed(proposal.idea)


async def test_goes_back_only_to_solutions_that_exist(ideator, state):
    idea = (await ideator.propose(state)).idea
    numbers = {solution.number for solution in state.situation.solutions}
    assert idea is None or idea.reverts_to is None or idea.reverts_to in numbers


async def test_is_deterministic(ideator, state):
    assert await said(ideator, state) == await said(ideator, state)


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
    mixed = [await said(ideator, state) for state in states]
    alone = [await said(ideator, state) for state in (states[0], states[2])]
    assert [mixed[0], mixed[2]] == alone
    assert mixed[3] == await said(ideator, states[3])


async def test_survives_the_journal(ideator, state):
    """A state read back from JSON brings the same answer."""
    import msgspec

    again = msgspec.json.decode(msgspec.json.encode(state), type=type(state))
    assert await said(ideator, again) == await said(ideator, state)
