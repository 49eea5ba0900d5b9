"""A situation read back from a journal is the one that the ideator got."""

import pytest

from mle_ideator.errors import UsageError
from mle_ideator.journal import FILE, Asked, read_journal
from mle_ideator.limits import Limits
from mle_ideator.replay import help_state_at
from mle_ideator.types import Execute, Finish, HelpRequest, Idea, Proposal, SeekHelp, Usage
from tests.conftest import writes_and_runs
from tests.core.test_session import HELP, Plays


class Records:
    """An ideator that keeps what it was asked and restores the first solution."""

    def __init__(self):
        self.states = []

    async def propose(self, state):
        self.states.append(state)
        idea = Idea("revert to #1, it is simpler", "Blend it.", "It is robust.")
        return Proposal(idea, usage=Usage(1, 100, 0, 20, 0, 0.5, 0.5))


HELP_AGAIN = SeekHelp(HelpRequest("still stuck", "an idea", "anything"))
CELLS = (
    "print('a look')",
    writes_and_runs(1),
    HELP,
    "open('solution.py', 'a').write('# touched')",
    writes_and_runs(1.5),
    HELP_AGAIN,
    "1 / 0",
)


RECORDED = []


@pytest.fixture
async def recorded(play, folder_of_run):
    """The events of a session, what its ideator saw, what its implementer saw: once for all."""
    if not RECORDED:
        ideator, implementer = Records(), Plays(*CELLS)
        limits = Limits(steps=9, cost_usd=10, tokens=10_000)
        await play(implementer, ideator, seed=7, limits=limits)
        RECORDED.extend([read_journal(folder_of_run / FILE), ideator.states, implementer.saw])
    return RECORDED


async def test_at_a_help_request_it_is_what_the_ideator_got(recorded):
    events, states, _ = recorded
    assert len(states) == 2
    assert help_state_at(events, 3) == states[0]
    assert help_state_at(events, 6) == states[1]
    assert help_state_at(events) == states[1]
    assert states[1].situation.remaining.cost_usd == 9.5


async def test_at_another_step_it_is_the_implementers_situation(recorded):
    events, _, situations = recorded
    for number in (1, 2, 4, 7):
        state, saw = help_state_at(events, number), situations[number - 1]
        for name in ("task", "trajectory", "solutions", "best", "code", "sandbox", "seed"):
            assert getattr(state.situation, name) == getattr(saw, name), (number, name)
        for name in ("steps", "help_requests", "tokens", "cost_usd"):
            left = getattr(state.situation.remaining, name)
            assert left == getattr(saw.remaining, name), (number, name)
        assert state.situation.remaining.seconds == pytest.approx(saw.remaining.seconds, abs=2)


async def test_the_runtime_asks_in_its_own_words(recorded):
    events, _, _ = recorded
    request = help_state_at(events, 8).request
    assert request.problem == "What to do next is open; the best solution is #2."
    assert request.attempts == "- step 7: no words (error)"
    assert request.goal == "A solution that scores better than #2 on rmse."
    assert "no valid solution yet" in help_state_at(events, 1).request.problem


async def test_a_run_without_help_is_asked_about_at_its_end(play, folder_of_run):
    ideator = Records()
    await play(Plays("print(1)"), ideator)
    state = help_state_at(read_journal(folder_of_run / FILE))
    assert [type(step.action) for step in state.situation.trajectory] == [Execute, Finish]


async def test_a_journal_that_does_not_tell_what_was_asked(recorded):
    events, states, _ = recorded
    older = [event for event in events if not isinstance(event, Asked)]
    state = help_state_at(older)
    assert state.request == HELP_AGAIN.request
    assert state.situation.trajectory == states[1].situation.trajectory
    assert state.situation.code == states[1].situation.code
    assert state.situation.remaining.help_requests == states[1].situation.remaining.help_requests


@pytest.mark.parametrize("number", [0, -1, 10, 99])
async def test_there_is_no_such_step(recorded, number):
    with pytest.raises(UsageError, match=f"no step {number}: it has 8, 9 is the next"):
        help_state_at(recorded[0], number)


async def test_a_run_that_was_killed_while_the_ideator_thought(recorded):
    events, states, _ = recorded
    asked = next(i for i, e in enumerate(events) if isinstance(e, Asked) and e.step == 6)
    assert help_state_at(events[: asked + 1]) == states[1]
