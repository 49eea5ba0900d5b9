"""Built-ins, dotted paths and wrong names."""

import sys

import pytest

from mle_ideator.errors import UsageError
from mle_ideator.ideators.null import NullIdeator
from mle_ideator.registry import create, find, registered


def test_built_ins_come_in_through_entry_points():
    assert {"offline", "null", "vague", "fixed"} <= set(registered("ideators"))
    assert {"offline", "scripted"} <= set(registered("implementers"))
    assert isinstance(create("ideators", "null"), NullIdeator)


def test_a_dotted_path_needs_no_entry_point():
    assert isinstance(create("ideators", "mle_ideator.ideators.null:NullIdeator"), NullIdeator)


def test_a_class_in_the_working_directory_needs_no_installing(tmp_path, monkeypatch):
    (tmp_path / "my_own_ideator.py").write_text("class Mine:\n    pass\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    assert type(create("ideators", "my_own_ideator:Mine")).__name__ == "Mine"


def test_the_argument_is_what_follows_the_first_colon():
    assert find("implementers", "scripted:a:b")[1] == "a:b"
    assert find("implementers", "scripted")[1] is None


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        ("offlin", "did you mean 'offline'"),
        ("zzz", "known: anthropic, fixed"),
        ("no.such.module:Class", "can not be imported"),
        ("mle_ideator.ideators.null:Nobody", "has no 'Nobody'"),
        ("null:argument", "takes no argument after the colon"),
        ("", "unknown ideator ''"),
        ("../../etc", "unknown ideator"),
    ],
)
def test_wrong_specs_get_one_clear_line(spec, line):
    with pytest.raises(UsageError) as caught:
        create("ideators", spec)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_agent_that_needs_an_argument_says_so():
    with pytest.raises(UsageError, match="'scripted' needs an argument after the colon"):
        create("implementers", "scripted")


def test_a_chat_model_in_place_of_an_agent_is_played_by_the_agent_for_chat_models(tmp_path):
    script = tmp_path / "replies.yaml"
    script.write_text("[hello]")
    assert type(create("ideators", f"scripted:{script}")).__name__ == "PromptedIdeator"
    implementer = create("implementers", f"codeact:scripted:{script}")
    assert type(implementer).__name__ == "CodeActImplementer"
    assert implementer.model.name == f"scripted:{script}"


@pytest.mark.parametrize(
    ("spec", "options", "line"),
    [
        ("null", {"ideas": 3}, "ideator 'null' takes no options, but got ideas"),
        ("prompted:scripted:FILE", {"idea": 3}, "did you mean 'ideas'?"),
        ("prompted:scripted:FILE", {"ideas": "many"}, "Expected `int`"),
    ],
)
def test_wrong_options_get_one_clear_line(spec, options, line, tmp_path):
    (tmp_path / "replies.yaml").write_text("[hello]")
    with pytest.raises(UsageError) as caught:
        create("ideators", spec.replace("FILE", str(tmp_path / "replies.yaml")), options)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)
