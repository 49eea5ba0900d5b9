"""A session as one text, for a reader who took no part in it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from mle_ideator.context.condensing import line_of, shortened
from mle_ideator.context.cutting import cut
from mle_ideator.context.plan import Plan, Sizes, compacted, summary_room
from mle_ideator.context.tokens import tokens_of
from mle_ideator.prompts import render
from mle_ideator.types import Step


def account(steps: Sequence[Step], budget: int) -> str:
    """The trajectory in at most `budget` tokens: recent steps whole, older ones condensed.

    A step larger than half of the budget is cut to head and tail, and last the whole text is.
    """
    whole, room = [_whole(step, budget // 2) for step in steps], summary_room(budget)
    lines = [line_of(step, room) for step in steps]
    sizes = Sizes([tokens for _, tokens in whole], [tokens for _, tokens in lines], budget)
    plan = Plan()
    if sizes.used(plan, len(steps)) > budget:
        plan = compacted(plan, sizes, len(steps), budget * 3 // 4)
    texts = [*shortened(steps, plan, room), *(text for text, _ in whole[plan.condensed :])]
    return cut("\n\n".join(texts), budget)


@lru_cache(maxsize=4096)
def _whole(step: Step, most: int) -> tuple[str, int]:
    text = cut(render("context/step", step=step), most)
    return text, tokens_of(text) + 1
