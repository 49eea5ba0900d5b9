"""A session as the conversation that its implementer had, within a token budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from mle_ideator.context.condensing import line_of, shortened
from mle_ideator.context.cutting import far_over, fitted
from mle_ideator.context.plan import Sizes, planned, summary_room
from mle_ideator.context.tokens import size
from mle_ideator.errors import ContextOverflow
from mle_ideator.messages import Message
from mle_ideator.types import Step

LEAST_BUDGET = 2048
"""With fewer tokens nothing of use can be said."""
MOST_STEPS, STRIDE = 2000, 1000
"""Of so many steps each is weighed; of more, as many strides as leave no fewer are not."""

Written = Callable[[Step], Sequence[Message]]


def conversation(
    head: Sequence[Message],
    steps: Sequence[Step],
    tail: Message,
    budget: int,
    written: Written,
    *,
    reminder: Message | None = None,
    seen_in: int = 0,
) -> tuple[Message, ...]:
    """The messages of the next request, in at most `budget` tokens as `size` counts them.

    `head` (the same all session) and `tail` (what is new at this step) are whole, and so are the
    recent steps, as `written` renders them: a pure function that is the same object each time, for
    its answers are remembered. Older steps become lines, the oldest one paragraph. What is larger
    than its share all the same is cut: the head to five eighths of the budget, the tail to what
    that and an eighth for the steps leave, a step to half of what there is for steps.

    A `reminder` comes before the tail, unless step number `seen_in`, which says the same, is whole.

    All but the tail stays the same from one step to the next, byte for byte, until the budget is
    reached; then the steps are condensed to two fifths of their room at once. A `stable` message
    ends what will be sent again.

    Raises `ContextOverflow` if `budget` is less than `LEAST_BUDGET`.
    """
    if budget < LEAST_BUDGET:
        raise ContextOverflow(f"{budget} tokens are no context to work in.")
    head = _certain(fitted(head, budget * 5 // 8))
    left = budget - size(head)
    end = (reminder, tail) if reminder else (tail,)
    reserve = min(_reserve(end, budget), left - budget // 8)
    earlier, recent = _history(steps, left - reserve, written)
    if any(shown.uncut for shown in recent if shown.number == seen_in):
        end = (tail,)
    whole = [message for shown in recent for message in shown.messages]
    return (*_stable(head), *_stable(earlier), *_stable(whole), *_certain(fitted(end, reserve)))


def _certain(messages: tuple[Message, ...] | None) -> tuple[Message, ...]:
    if messages is None:
        raise ContextOverflow("even cut, the task and the solution do not fit.")
    return messages


def _stable(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages, the last one marked: a cache may end there."""
    return (*messages[:-1], *(replace(message, stable=True) for message in messages[-1:]))


def _reserve(end: Sequence[Message], budget: int) -> int:
    """Room for the tail in coarse grades, so that its changing length moves nothing else."""
    share, tokens = budget // 16, budget if far_over(end, budget) else size(end)
    while share < tokens:
        share *= 2
    return share


class _Shown(NamedTuple):
    """A step's messages, and how many tokens they take."""

    number: int
    messages: tuple[Message, ...]
    tokens: int
    uncut: bool


def _history(
    steps: Sequence[Step], limit: int, written: Written
) -> tuple[list[Message], list[_Shown]]:
    """The steps within `limit` tokens: the older ones condensed, the recent ones whole."""
    first, room = _first(len(steps)), summary_room(limit)
    whole = [_shown(step, limit // 2, written) for step in steps[first:]]
    lines = [line_of(step, room)[1] for step in steps[first:]]
    earlier = [0] * first
    sizes = Sizes([*earlier, *(shown.tokens for shown in whole)], [*earlier, *lines], limit)
    plan = planned(sizes, len(steps), first)
    texts = [Message("user", text) for text in shortened(steps, plan, room)]
    return texts, whole[plan.condensed - first :]


def _first(steps: int) -> int:
    """How many steps are only counted, whatever their size; moves on in big rare strides."""
    return max(0, (steps - MOST_STEPS) // STRIDE * STRIDE)


@lru_cache(maxsize=4096)
def _shown(step: Step, most: int, written: Written) -> _Shown:
    """A step's messages in at most so many tokens."""
    original = tuple(written(step))
    messages = fitted(original, most)
    if messages is None:
        around = size([Message("user", "")])
        messages = (Message("user", line_of(step, most - around)[0]),)
    return _Shown(step.number, messages, size(messages), messages == original)
