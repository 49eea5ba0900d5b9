"""The summary is a function of the journal; its keys are a promise to scripts."""

import msgspec
import pytest

from mle_ideator.journal import Decided, Ended, Rerun, Solved, Started, Stepped
from mle_ideator.results import Summary, record_of, summarise
from mle_ideator.types import (
    Decision,
    Execute,
    HelpRequest,
    Idea,
    Observation,
    Score,
    Scores,
    SeekHelp,
    Solution,
    Step,
    Usage,
)
from tests.core.test_journal import STARTED

IDEA = Idea("Refine", "Do.", "Why.")


def acted(number, solution=None, usage=None):
    action = Execute("python", "1")
    step = Step(number=number, action=action, observation=Observation(text=""), solution=solution)
    decision = Decision(action, usage=usage or Usage())
    return [
        Decided(at_s=0.0, step=number, decision=decision),
        Stepped(at_s=float(number), step=step),
    ]


def asked(number, idea=IDEA):
    action = SeekHelp(HelpRequest("p", "a", "g"))
    step = Step(number=number, action=action, observation=Observation(text=""), idea=idea)
    return [Stepped(at_s=float(number), step=step, ideator_usage=Usage(calls=1))]


def solved(number, step, value, best):
    scores = Scores(Score(value, False), Score(value + 1, False), Score(value + 2, False))
    solution = Solution(number=number, step=step, code="", scores=scores, digest="")
    return [Solved(at_s=float(step), solution=solution, best=best)]


def test_the_keys_that_scripts_rely_on(tmp_path):
    summary = summarise(tmp_path, record_of([STARTED]))
    promised = {
        *("run", "task", "outcome", "steps", "help_requests", "best", "baseline"),
        *("improvements", "usage", "duration_s"),
    }
    built = msgspec.to_builtins(summary)
    assert promised <= set(built)
    assert set(built["best"]) == {"validation", "public", "private", "solution"}
    assert set(built["baseline"]) == {"validation", "public", "private"}
    assert built["best"]["private"] is None
    assert msgspec.json.decode(msgspec.json.encode(summary), type=Summary) == summary


@pytest.mark.parametrize(
    ("events", "improvements"),
    [
        ([*solved(1, 1, 5.0, True)], 0),
        ([*solved(1, 1, 5.0, True), *asked(2), *solved(2, 3, 4.0, True)], 1),
        ([*asked(2), *solved(2, 3, 4.0, True), *solved(3, 4, 3.0, True)], 1),
        ([*asked(2), *solved(2, 3, 4.0, True), *asked(4), *solved(3, 5, 3.0, True)], 2),
        ([*asked(2), *solved(2, 3, 4.0, False)], 0),
        ([*asked(2), *solved(2, 3, 6.0, False), *solved(3, 4, 4.0, True)], 0),
        ([*asked(2, idea=None), *solved(2, 3, 4.0, True)], 0),
    ],
)
def test_improvements_count_ideas_whose_first_solution_is_a_new_best(events, improvements):
    assert len(record_of([STARTED, *events]).improved) == improvements


def test_the_rerun_of_the_final_solution_is_what_counts(tmp_path):
    again = Scores(Score(5.5, False), Score(6.5, False), Score(7.5, False))
    events = [
        STARTED,
        *acted(1, solution=1),
        *solved(1, 1, 5.0, True),
        Rerun(at_s=2.0, solution=1, reproduced=True, scores=again),
        Ended(at_s=3.0, outcome="finished", solution=1),
    ]
    summary = summarise(tmp_path, record_of(events))
    assert (summary.best.validation, summary.best.private) == (5.5, 7.5)
    assert summary.reproduced
    assert summary.duration_s == 3.0


def test_usage_is_told_apart_by_agent_and_unknown_stays_unknown(tmp_path):
    unknown = Usage(calls=1, input_tokens=None, output_tokens=3, cost_usd=None)
    events = [STARTED, *acted(1, usage=unknown), *acted(2, usage=unknown), *asked(3)]
    usage = summarise(tmp_path, record_of(events)).usage
    assert usage["implementer"] == Usage(calls=2, input_tokens=None, output_tokens=6, cost_usd=None)
    assert usage["ideator"].calls == 1


def test_a_killed_run_shows_the_best_so_far():
    record = record_of([STARTED, *solved(1, 1, 5.0, True), *solved(2, 2, 6.0, False)])
    assert record.ended is None
    assert record.final.number == 1
    assert isinstance(record.started, Started)
