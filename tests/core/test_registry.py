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
        ("zzz", "known: fixed, null, offline"),
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
