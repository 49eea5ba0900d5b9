"""What all environments share: the served prompt, the served reading of an answer."""

from __future__ import annotations

import importlib
import sys

import pytest

from mle_ideator.errors import UsageError
from mle_ideator.ideators.prompted import PromptedIdeator
from mle_ideator.ideators.prompted.messages import EXAMPLE
from mle_ideator.messages import Completion
from mle_ideator.rl.environments.one_step import OneStep, chat, proposal_from
from tests.rl.made_rollouts import BREAKS, MadeRollouts, answer, cards, help_state

GOOD = "Use gradient boosting."
COPIED = "\n".join(
    f"<{name}>{getattr(EXAMPLE, name)}</{name}>" for name in ("analysis", "action", "rationale")
)
ANSWERS = {
    "good": answer(GOOD),
    "thought": f"<think>Let me see.</think>{answer(GOOD)}",
    "cut at the stop": answer(GOOD).removesuffix("</rationale>"),
    "json": '{"analysis": "Refine: x", "action": "Tune.", "rationale": "z"}',
    "prose": "I would use boosting.",
    "empty": "",
    "no such solution": answer(GOOD).replace("Refine", "Revert to #7"),
    "the example": COPIED,
}


class Served:
    """A chat model that answers, also when it is asked to repair its answer, the same."""

    name, context_tokens, priced = "served", None, True

    def __init__(self, text):
        self.text, self.asked = text, []

    async def complete(self, messages, options=None):
        self.asked.append(messages)
        return Completion(text=self.text, finish_reason="stop")


def served(text):
    ideator = PromptedIdeator.__new__(PromptedIdeator)
    ideator.model, ideator.options, ideator._share = Served(text), PromptedIdeator.Options(), 1.0
    return ideator


@pytest.mark.parametrize("name", ANSWERS)
async def test_prompt_and_reading_are_those_of_a_served_ideator(name):
    state = help_state("a")
    ideator = served(ANSWERS[name])
    proposal = await ideator.propose(state)
    read = await proposal_from(ANSWERS[name], state)
    assert (read.idea, read.reason, read.malformed) == (
        proposal.idea, proposal.reason, proposal.malformed,
    )  # fmt: skip
    states = cards(3)
    steps = OneStep(rollouts=MadeRollouts(states))
    assert steps.prompt(states[0].id) == ideator.model.asked[0]


async def test_rewards_of_raw_answers():
    states = cards(30)
    rollouts = MadeRollouts(states)
    steps = OneStep(rollouts=rollouts, seed=3)
    assert steps.states == [card.id for card in states]
    rewards = {(await steps.judged(state, answer(GOOD))).reward for state in steps.states}
    assert rewards == {0.0, 1.0}
    state = states[0].id
    assert (await steps.judged(state, "nothing of use")).reward == -1
    assert (await steps.judged(state, answer(GOOD), cut=True)).reward == -1
    broken = await steps.judged(state, answer(BREAKS))
    assert (broken.reward, broken.outcome) == (None, "infra_error")
    assert "the sandbox is gone" in broken.detail
    assert {job.seed for job in rollouts.jobs} == {3}


async def test_prompts_keep_to_their_budget_and_name_their_roles():
    states = cards(1)
    steps = OneStep(rollouts=MadeRollouts(states), context_tokens=2500)
    messages = chat(steps.prompt(states[0].id))
    assert [message["role"] for message in messages] == ["system", "user", "user", "user"]
    assert "äöü" in messages[1]["content"]
    assert sum(len(message["content"]) for message in messages) < 4 * 2500


@pytest.mark.parametrize(
    ("module", "library", "extra"),
    [
        ("gym_env", "gymnasium", "gymnasium"),
        ("openenv_server", "openenv", "openenv"),
        ("verifiers_tasks", "verifiers", "verifiers"),
    ],
)
def test_a_missing_library_is_told_with_what_installs_it(monkeypatch, module, library, extra):
    name = f"mle_ideator.rl.environments.{module}"
    monkeypatch.delitem(sys.modules, name, raising=False)
    for loaded in [each for each in sys.modules if each.split(".")[0] == library]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UsageError, match=rf"pip install 'mle-ideator\[{extra}\]'"):
        importlib.import_module(name)
