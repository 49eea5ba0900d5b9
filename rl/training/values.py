"""What passes between a trainer and the ground: prompts, answers, and what came of them."""

from __future__ import annotations

from mle_ideator.messages import Message
from mle_ideator.rl.values import RolloutResult
from mle_ideator.types import Value


class Prompt(Value, frozen=True):
    """A help state as the policy reads it."""

    state: str
    """Id of the help state."""
    task: str
    messages: tuple[Message, ...]


class Answer(Value, frozen=True):
    """What the policy wrote."""

    text: str
    tokens: int
    cut: bool = False
    """Did it reach the limit of tokens before its end?"""


class Group(Value, frozen=True):
    """The answers to one help state, and what each brought (arXiv 2601.17596)."""

    state: str
    answers: tuple[Answer, ...]
    results: tuple[RolloutResult, ...]

    @property
    def rewards(self) -> tuple[float | None, ...]:
        """`None` where the runtime is why nothing was tried: masked, never 0."""
        return tuple(result.reward for result in self.results)
