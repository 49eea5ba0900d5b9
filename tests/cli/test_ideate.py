"""`ideate`: an ideator is asked about a recorded situation."""

import json

import pytest
import yaml
from msgspec import structs

from mle_ideator.cli import main
from mle_ideator.journal import FILE, Decided, Journal
from mle_ideator.types import Decision, HelpRequest, SeekHelp
from tests.core.test_journal import STARTED
from tests.core.test_results import acted, asked

IDEAS = [
    {"analysis": "refine it", "action": "Tune \x1b[31m the depth.", "rationale": "It underfits."},
    {"analysis": "revert to #1", "action": "Blend.", "rationale": "They differ."},
]


def call(*arguments):
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    return end.value.code


@pytest.fixture
def run(tmp_path):
    """The journal of a run whose ideator had no idea at step 2."""
    action = SeekHelp(HelpRequest("stuck", "two attempts", "a better score"))
    with Journal(tmp_path / FILE) as journal:
        for event in (
            structs.replace(STARTED, config={"ideator": "null", "limits": {}}),
            *acted(1),
            Decided(at_s=2.0, step=2, decision=Decision(action)),
            *asked(2, idea=None),
            *acted(3),
        ):
            journal.append(event)
    return tmp_path


@pytest.fixture
def ideas(tmp_path):
    file = tmp_path / "ideas.yaml"
    file.write_text(yaml.safe_dump(IDEAS))
    return f"fixed:{file}"


def test_the_idea_is_printed_readably(run, ideas, capsys):
    assert call("ideate", run, "--ideator", ideas) == 0
    said = capsys.readouterr().out
    assert "after 1 steps: stuck" in said
    assert "analysis: refine it\n" in said
    assert "action: Tune ␛[31m the depth.\n" in said
    assert "rationale: It underfits.\n" in said


def test_without_an_idea_there_is_a_reason_and_code_1(run, capsys):
    assert call("ideate", run) == 1
    assert "no idea came: " in capsys.readouterr().out


def test_json_is_the_proposal(run, ideas, capsys):
    assert call("ideate", run, "--step", 1, "--ideator", ideas, "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["idea"] == IDEAS[0]
    assert answer["usage"]["calls"] == 0


def test_an_ideator_of_ones_own_that_breaks(run, tmp_path, monkeypatch, capsys):
    (tmp_path / "broken_ideas.py").write_text(
        "class Broken:\n    async def propose(self, state):\n        return 1 / 0\n"
    )
    monkeypatch.chdir(tmp_path)
    assert call("ideate", run, "--ideator", "broken_ideas:Broken") == 3
    assert "the ideator broke: ZeroDivisionError" in capsys.readouterr().err


def test_what_an_ideator_prints_is_not_part_of_the_answer(run, tmp_path, monkeypatch, capfd):
    (tmp_path / "loud_ideas.py").write_text(
        "import os\n"
        "from mle_ideator.types import Proposal\n"
        "class Loud:\n"
        "    async def propose(self, state):\n"
        "        os.system('echo printed')\n"
        "        return Proposal(None, 'none')\n"
        "class Wrong:\n"
        "    async def propose(self, state):\n"
        "        return 'an idea'\n"
    )
    monkeypatch.chdir(tmp_path)
    assert call("ideate", run, "--ideator", "loud_ideas:Loud", "--json") == 1
    said = capfd.readouterr()
    assert json.loads(said.out)["reason"] == "none"
    assert "printed" in said.err
    assert call("ideate", run, "--ideator", "loud_ideas:Wrong") == 3
    assert "answered with str, not with a Proposal" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--step", "9"], "the run has no step 9: it has 3, 4 is the next"),
        (["--ideator", "ofline"], "did you mean 'offline'"),
        (["--ideator", "os:getcwd"], "is no ideator"),
        (["--set", "ideas"], "must be written key=value"),
        (["--set", "ideas=2"], "takes no options, but got ideas"),
    ],
)
def test_a_wrong_call_gets_one_line(run, arguments, line, capsys):
    assert call("ideate", run, *arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert line in said.err
    assert said.err.count("\n") == 1
