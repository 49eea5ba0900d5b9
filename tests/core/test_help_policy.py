"""When the runtime asks on the implementer's behalf, and in what words."""

import pytest

from mle_ideator.errors import UsageError
from mle_ideator.help_policy import HelpPolicy, help_policy
from mle_ideator.limits import Limits
from mle_ideator.types import (
    Decision,
    Execute,
    Finish,
    HelpRequest,
    Idea,
    Proposal,
    SeekHelp,
)
from tests.conftest import writes_and_runs

NOTHING = "pass"
HELP = SeekHelp(HelpRequest("stuck", "", ""))


class Plays:
    """Plays cells, in order of what it has itself done so far."""

    def __init__(self, *actions):
        self.actions = actions

    async def act(self, situation):
        own = [s for s in situation.trajectory if getattr(s.action, "asked_by", "") != "runtime"]
        if len(own) == len(self.actions):
            return Decision(Finish())
        action = self.actions[len(own)]
        return Decision(Execute("python", action) if isinstance(action, str) else action, "words")


class Listens:
    """An ideator that keeps what it was asked."""

    def __init__(self):
        self.states = []

    async def propose(self, state):
        self.states.append(state)
        return Proposal(Idea("Refine: go on.", "Do more.", "It may help."))


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("agent", HelpPolicy("agent")),
        ("plateau", HelpPolicy("plateau", 4)),
        ("plateau-2", HelpPolicy("plateau", 2)),
        ("every-3", HelpPolicy("every", 3)),
    ],
)
def test_policies(text, policy):
    assert help_policy(text) == policy


@pytest.mark.parametrize("text", ["", "every", "every-0", "plateau-x", "never", "every-n"])
def test_no_policies(text):
    with pytest.raises(UsageError, match="write agent, plateau-4 or every-3"):
        help_policy(text)


def asked(record):
    return [s.number for s in record.steps if isinstance(s.action, SeekHelp)]


async def test_by_default_only_the_implementer_asks(play):
    record = await play(Plays(NOTHING, NOTHING, NOTHING, NOTHING, NOTHING), Listens())
    assert asked(record) == []


async def test_a_plateau_is_steps_without_a_new_best(play):
    ideator = Listens()
    cells = [NOTHING, writes_and_runs(1), NOTHING, writes_and_runs(9), NOTHING]
    record = await play(Plays(*cells), ideator, help_policy="plateau-2")
    assert asked(record) == [5]  # step 2 made the best; 3 and 4 did not
    action = record.steps[4].action
    assert action.asked_by == "runtime"
    assert action.request.problem.startswith("No new best solution in the last 4 steps")
    assert "step 4: words (ok, solution #2)" in action.request.attempts
    assert "better than #1 on rmse" in action.request.goal
    assert record.steps[4].idea is not None


async def test_a_plateau_without_any_solution_is_one_too(play):
    record = await play(Plays(NOTHING, NOTHING), Listens(), help_policy="plateau-2")
    assert asked(record) == [3]
    assert record.steps[2].action.request.problem == "No valid solution after 2 steps."


async def test_help_that_the_implementer_sought_counts(play):
    cells = [NOTHING, HELP, NOTHING, NOTHING]
    record = await play(Plays(*cells), Listens(), help_policy="plateau-2")
    assert asked(record) == [2, 5]
    assert [s.action.asked_by for s in record.steps if s.number in (2, 5)] == [
        "implementer",
        "runtime",
    ]


async def test_every_n_asks_even_after_a_gain(play):
    cells = [writes_and_runs(1), writes_and_runs(2), NOTHING]
    record = await play(Plays(*cells), Listens(), help_policy="every-2")
    assert asked(record) == [3]


async def test_the_runtime_keeps_the_limit_on_help_requests(play):
    record = await play(
        Plays(*[NOTHING] * 5), Listens(), help_policy="every-1", limits=Limits(help_requests=2)
    )
    assert len(asked(record)) == 2
