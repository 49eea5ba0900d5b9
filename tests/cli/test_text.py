"""Nothing that an agent writes reaches the terminal as a command."""

import pytest

from mle_ideator.cli.text import duration, one_line, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x1b]0;title\x07", "␛[2J␛]0;title␇"),
        ("a\rb\x08", "a␍b␈"),
        ("a\x7f\x9b31m", "a\N{SYMBOL FOR DELETE}�31m"),
        ("right\u202eto left", "right�to left"),
        ("lone \ud800", "lone �"),
        ("keeps\ttabs\nand lines, é, 漢字, 🎉", "keeps\ttabs\nand lines, é, 漢字, 🎉"),
    ],
)
def test_control_characters_become_visible(text, shown):
    assert printable(text) == shown


def test_one_line_is_the_first_with_anything_on_it():
    assert one_line("\n  \n  abcdef \n second", 4) == "abc…"
    assert one_line("", 4) == ""


def test_durations():
    assert [duration(s) for s in (0.4, 59.4, 60, 725, 12000)] == [
        *("0s", "59s", "1m00s", "12m05s", "3h20m")
    ]
