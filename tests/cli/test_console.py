"""The console is a function of the journal: plain lines, or a live picture, all text escaped."""

import io
import re

import pytest
from msgspec import structs, to_builtins
from rich.console import Console

from mle_ideator.cli.console import PlainConsole, console_for
from mle_ideator.cli.live import LiveConsole
from mle_ideator.cli.wording import usage_text
from mle_ideator.journal import Decided, Ended, Rejected, Rerun, Stepped, Warned
from mle_ideator.limits import Limits
from mle_ideator.results import record_of, summarise
from mle_ideator.types import (
    UNKNOWN_USAGE,
    Decision,
    Execute,
    Grade,
    Observation,
    Problem,
    Step,
    Usage,
)
from tests.core.test_journal import STARTED
from tests.core.test_results import acted, asked, solved

CONFIG = {"implementer": "offline", "ideator": "[bold]null", "limits": to_builtins(Limits())}
EVIL = "[red]markup[/red] \x1b[31mescape\x07"
ACTION = Execute("python", EVIL)
EVENTS = [
    structs.replace(STARTED, config=CONFIG),
    *acted(1, solution=1),
    *solved(1, 1, 5.0, True),
    *asked(2),
    Decided(at_s=3.0, step=3, decision=Decision(ACTION, thought=EVIL)),
    Stepped(
        at_s=4.0,
        step=Step(number=3, action=ACTION, observation=Observation(text=EVIL), thought=EVIL),
    ),
    Rejected(at_s=4.0, step=3, grade=Grade(problems=(Problem("nan", EVIL),))),
    Warned(at_s=4.0, message=EVIL),
    Rerun(at_s=5.0, solution=1, reproduced=True, scores=solved(1, 1, 5.0, True)[0].solution.scores),
    Ended(at_s=6.0, outcome="finished", solution=1),
]


def drawn(kind, events, tmp_path):
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=kind is LiveConsole, width=120, height=40)
    view = kind(console)
    with view:
        for event in events:
            view(event)
            if kind is LiveConsole:
                view._live.refresh()
    view.finish(summarise(tmp_path, record_of(events)))
    return stream.getvalue()


def test_plain_lines_without_a_terminal(tmp_path):
    text = drawn(PlainConsole, EVENTS, tmp_path)
    assert isinstance(console_for(io.StringIO()), PlainConsole)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[red]markup[/red] ␛[31mescape␇" in text
    assert "solution #1: validation 5, public 6, the best so far" in text
    assert text.index("[1] python") < text.index("[2] idea: Do.") < text.index("ended: finished")


def test_no_private_score_until_the_end(tmp_path):
    text = drawn(PlainConsole, EVENTS, tmp_path)
    assert text.count("private 7") == 1
    assert "best validation 5, public 6, private 7" in text


def test_the_live_picture_shows_the_session_and_escapes_text(tmp_path):
    text = drawn(LiveConsole, EVENTS, tmp_path)
    assert "\x1b[31mescape" not in text
    assert "\x07" not in text
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
    for part in ("[red]markup[/red]", "seek help", "best validation 5", "19 steps", "[bold]null"):
        assert part in plain


def test_every_prefix_of_a_session_can_be_drawn(tmp_path):
    for length in range(1, len(EVENTS) + 1):
        assert drawn(LiveConsole, EVENTS[:length], tmp_path)


@pytest.mark.parametrize(
    ("usage", "text"),
    [
        (
            Usage(3, 12_000, 9_000, 800, 300, 0.042, 0.042, 41.2),
            "3 model calls in 41s, 12,000 tokens in (75% cached) and 800 out, $0.042",
        ),
        (Usage(1, 10, 0, 2), "1 model call, 10 tokens in and 2 out, $0.000"),
        (
            Usage(1, None, None, None, None, None, 0.5),
            "1 model call, tokens unknown, at most $0.500",
        ),
        (UNKNOWN_USAGE, "1 model call, tokens unknown, cost unknown"),
    ],
)
def test_what_models_used_is_said_with_what_is_unknown(usage, text):
    assert usage_text(usage) == text
