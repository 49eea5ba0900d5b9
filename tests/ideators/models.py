"""A model on a desk: the real `PatientModel` before an endpoint that plays and keeps notes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mle_ideator.chat.calls import CallFailed, Patience, PatientModel
from mle_ideator.chat.prices import Price
from mle_ideator.ideators.prompted import PromptedIdeator
from mle_ideator.messages import CallOptions, Completion, Message
from mle_ideator.types import Usage

SCRIPTS = Path(__file__).parent / "scripts"


def idea_text(action: str = "Use ratios.", analysis: str = "Refine: go on.") -> str:
    return f"<analysis>{analysis}</analysis><action>{action}</action><rationale>r</rationale>"


def cut_off(text: str) -> Completion:
    return Completion(text=text, usage=USED, finish_reason="length")


USED = Usage(
    calls=1,
    input_tokens=100,
    cached_tokens=0,
    output_tokens=10,
    reasoning_tokens=0,
    cost_usd=0.01,
    at_most_usd=0.01,
)


class Desk:
    """Gives the n-th answer to the n-th call, the last one again and again."""

    name = "desk"

    def __init__(self, *answers: str | Completion | CallFailed) -> None:
        self.answers = answers
        self.asked: list[tuple[Sequence[Message], CallOptions]] = []
        self.context_tokens: int | None = None
        self.price: Price | None = Price(input=0.0, output=0.0)

    async def send(self, messages: Sequence[Message], options: CallOptions) -> Completion:
        self.asked.append((messages, options))
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if isinstance(answer, CallFailed):
            raise answer
        if isinstance(answer, Completion):
            return answer
        return Completion(text=answer, usage=USED, finish_reason="stop")

    async def aclose(self) -> None:
        return None


def ideator_at(desk: Desk, **options) -> PromptedIdeator:
    """A prompted ideator whose model sits at this desk."""
    spec = f"scripted:{SCRIPTS / 'good.yaml'}"
    ideator = PromptedIdeator(spec, PromptedIdeator.Options(**options))
    ideator.model = PatientModel(desk, Patience(tries=1))
    return ideator
