"""What docs/ideators.md shows runs, and what it says is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mle_ideator.ideators.fixed import FixedIdeator
from mle_ideator.recipes import Column
from mle_ideator.registry import registered
from mle_ideator.rl.reward import REWARDS

DOCS = (Path(__file__).parents[2] / "docs" / "ideators.md").read_text(encoding="utf-8")


def snippets(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOCS, re.DOTALL)


@pytest.fixture
def state(story, task, profile, code):
    number = Column(name="x", kind="number", levels=99)
    return story(task(), profile(number)).solved(code("model_linear"), 0.5).state()


async def test_ones_own_ideator_works(state, story, task):
    scope: dict = {}
    exec(snippets("python")[1], scope)
    ideator = scope["BackToTheBest"]()
    assert (await ideator.propose(state)).idea.reverts_to == 1
    assert (await ideator.propose(story(task()).state())).idea is None


def test_explaining_works(state, capsys):
    scope: dict = {}
    exec(snippets("python")[0], scope)
    scope["explain"](state)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("model_boosting: ")


async def test_the_file_of_ideas_can_be_read(state, tmp_path: Path):
    file = tmp_path / "ideas.yaml"
    file.write_text(snippets("yaml")[0])
    idea = (await FixedIdeator(str(file)).propose(state)).idea
    assert idea.action == "Use histogram gradient boosting with early stopping."


def test_every_registered_ideator_is_described():
    described = set(re.findall(r"^\| `(\w+)(?::\S+)?` \|", DOCS, re.MULTILINE))
    assert set(registered("ideators")) <= described


def test_every_outcome_is_described():
    for outcome, reward in REWARDS.items():
        row = next(line for line in DOCS.splitlines() if line.startswith(f"| `{outcome}`"))
        sign = {1.0: "+1", 0.0: "0", -1.0: "−1", None: "none"}[reward]
        assert row.split("|")[3].strip().startswith(sign)
