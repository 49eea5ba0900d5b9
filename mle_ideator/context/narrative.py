"""A session as one text, for a reader who took no part in it."""

from __future__ import annotations

from collections.abc import Sequence

from mle_ideator.context.condensing import line_of, shortened
from mle_ideator.context.cutting import cut
from mle_ideator.context.plan import HEADING, Plan, summary_room
from mle_ideator.context.tokens import tokens_of
from mle_ideator.prompts import render
from mle_ideator.types import Step


def account(steps: Sequence[Step], budget: int) -> str:
    """The trajectory in at most `budget` tokens: recent steps whole, older ones condensed.

    A step larger than half of the budget is cut to head and tail, and last the whole text is.
    Steps are read from the latest one back, and only as many as are told.
    """
    texts, room = _told(steps, budget), summary_room(budget)
    plan = _plan(steps, len(steps) - len(texts), budget, room)
    return cut("\n\n".join([*shortened(steps, plan, room), *texts]), budget)


def _told(steps: Sequence[Step], budget: int) -> list[str]:
    """The latest steps, whole: all if they fit, else those in three quarters of the budget."""
    texts: list[str] = []
    used = kept = 0
    for step in reversed(steps):
        text = cut(render("context/step", step=step), budget // 2)
        used += tokens_of(text) + 1
        if used > budget:
            return texts[: max(1, kept)][::-1]
        texts.append(text)
        kept += used <= budget * 3 // 4
    return texts[::-1]


def _plan(steps: Sequence[Step], end: int, budget: int, room: int) -> Plan:
    """How the steps before `end` are condensed: to lines, but if these take over a sixth of the
    budget, only those in half of that, and the rest to a summary.
    """
    tokens, start = HEADING, end
    for place in reversed(range(end)):
        tokens += line_of(steps[place], room)[1]
        if tokens <= budget // 12:
            start = place
        if tokens > budget // 6:
            return Plan(start, (end,) if start < end else ())
    return Plan(0, (end,) if end else ())
