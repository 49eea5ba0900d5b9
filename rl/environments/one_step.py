"""What every environment is made of: the prompt of a help state, and the reward of a raw answer.

The prompt is rendered, and the answer read, by the code that serves `prompted` ideators: what a
model is trained on here is what it is asked later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import msgspec

from mle_ideator.ideators.prompted.drafting import drafted
from mle_ideator.ideators.prompted.messages import Form, messages_of
from mle_ideator.ideators.prompted.policy import PromptedOptions
from mle_ideator.ideators.prompted.purse import Purse
from mle_ideator.messages import CallOptions, Completion, Message
from mle_ideator.rl.evaluation.gains import normalised_gain
from mle_ideator.rl.rollouts import Rollouts, attempted
from mle_ideator.rl.values import RolloutJob, RolloutResult
from mle_ideator.types import HelpState, Proposal

CONTEXT_TOKENS = PromptedOptions().context_tokens


@dataclass(frozen=True, kw_only=True)
class OneStep:
    """Episodes of one step: a help state is shown, an answer is given, one attempt is made."""

    rollouts: Rollouts
    context_tokens: int = CONTEXT_TOKENS
    """Most tokens of a prompt, as estimated; leave the model room for its answer."""
    form: Form = "tags"
    seed: int = 0
    """Of all rollouts: the same answer to the same help state then has the same reward."""
    attempts: int = 1

    @cached_property
    def states(self) -> list[str]:
        """Ids of all help states that were there when this was first asked."""
        return [card.id for card in self.rollouts.cards()]

    def prompt(self, state: str, share: float = 1.0) -> tuple[Message, ...]:
        """What a served model would read: a system message, then those of the user.

        With only a `share` of the tokens that it may have, where it turned out too long.
        """
        budget = int(self.context_tokens * share)
        return messages_of(self.rollouts.help_state(state), budget, self.form)

    async def judged(self, state: str, answer: str, *, cut: bool = False) -> RolloutResult:
        """What came of a model's raw answer; `cut` says that it reached a limit of tokens.

        It has no reward where the runtime, not the answer, is why nothing is known of it.
        """
        proposal = await proposal_from(answer, self.rollouts.help_state(state), self.form, cut=cut)
        job = RolloutJob(state=state, proposal=proposal, seed=self.seed, attempts=self.attempts)
        return await attempted(self.rollouts, job)


async def proposal_from(
    answer: str, state: HelpState, form: Form = "tags", *, cut: bool = False
) -> Proposal:
    """What a served ideator makes of a model's answer that is not better when asked again."""
    numbers = [solution.number for solution in state.situation.solutions]
    said = _Said(answer, "length" if cut else "stop")
    draft = await drafted(said, (), CallOptions(), Purse(None), form=form, solutions=numbers)
    if draft.idea:
        return Proposal(draft.idea)
    return Proposal(None, f"the answer was no idea: {draft.reason}", malformed=True)


@dataclass(frozen=True)
class _Said:
    """A chat model that has answered already."""

    text: str
    finish_reason: Literal["stop", "length"]
    name: str = "answered"
    context_tokens: int | None = None
    priced: bool = True

    async def complete(
        self, messages: Sequence[Message], options: CallOptions = CallOptions()
    ) -> Completion:
        return Completion(text=self.text, finish_reason=self.finish_reason)


def chat(messages: Sequence[Message]) -> list[dict[str, str]]:
    """As chat templates and most trainers take them."""
    return [{"role": message.role, "content": message.text} for message in messages]


def info_of(result: RolloutResult) -> dict[str, Any]:
    """A result in plain values, with its normalised gain."""
    gain = normalised_gain(result.before, result.after) if result.before and result.after else None
    told: dict[str, Any] = msgspec.to_builtins(result)
    return told | {"gain": gain, "masked": result.reward is None}
