"""What a policy reads and writes in tokens, the same in training as when it is served."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from mle_ideator.chat.templates import ChatTemplate
from mle_ideator.errors import UsageError
from mle_ideator.idea_form import PARTS
from mle_ideator.ideators.prompted.compact import LEAST_COMPACT
from mle_ideator.ideators.prompted.messages import Form, messages_of
from mle_ideator.ideators.prompted.policy import SHRINK, SHRINKS
from mle_ideator.messages import CallOptions, Message
from mle_ideator.rl.training.room import Room
from mle_ideator.types import HelpState, Idea


def prompt_tokens(template: ChatTemplate, messages: Sequence[Message]) -> list[int]:
    """The messages as the model reads them, up to where its answer begins."""
    return template.prompt(messages, CallOptions()).tokens


def fitting_prompt(
    template: ChatTemplate, state: HelpState, room: Room, form: Form = "tags"
) -> list[int] | None:
    """The request for an idea, shortened as `prompted` does if it does not fit into the context.

    `None` where even the shortest one does not.
    """
    budget = float(room.prompt)
    for _ in range(1 + SHRINKS):
        if budget < LEAST_COMPACT:
            break
        tokens = prompt_tokens(template, messages_of(state, int(budget), form))
        if len(tokens) < room.context:
            return tokens
        budget *= SHRINK
    return None


def answer_text(idea: Idea, form: Form = "tags") -> str:
    """An idea as a model is to write it."""
    parts = {name: getattr(idea, name) for name in PARTS}
    if form == "json":
        return msgspec.json.encode(parts).decode()
    return "\n".join(f"<{name}>{part}</{name}>" for name, part in parts.items())


def answer_tokens(tokenizer: Any, idea: Idea, form: Form = "tags") -> list[int]:
    """The same in tokens, the end of the answer included. Raises `UsageError` if there is none."""
    if tokenizer.eos_token_id is None:
        raise UsageError("the tokenizer has no end token, so answers would never end.")
    said = tokenizer.encode(answer_text(idea, form), add_special_tokens=False)
    return [*said, tokenizer.eos_token_id]
