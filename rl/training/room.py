"""How much of a model's context is for the prompt, and how much for the answer: as it is served."""

from __future__ import annotations

from typing import NamedTuple

from mle_ideator.ideators.prompted.policy import PromptedOptions


class Room(NamedTuple):
    """Tokens."""

    context: int
    prompt: int
    answer: int


def room_of(known: int | None, wanted: int | None, answer: int | None = None) -> Room:
    """Of a model whose files say `known`; `wanted` and `answer` make it smaller."""
    options = PromptedOptions()
    context = min(size for size in (known, wanted, options.context_tokens) if size)
    served = min(options.max_output_tokens, context // 4)
    return Room(context, context - served, min(answer or served, served))
