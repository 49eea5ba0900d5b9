"""What the model reads: a help state within a token budget, the stable parts first."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Literal

from mle_ideator.actions import fence_around
from mle_ideator.context import LEAST_BUDGET, account, size
from mle_ideator.context.cutting import cut
from mle_ideator.errors import AgentError
from mle_ideator.ideators.prompted.compact import LEAST_COMPACT, compact
from mle_ideator.messages import Message
from mle_ideator.prompts import render
from mle_ideator.solutions import MOST_COMPARED, way_back
from mle_ideator.types import HelpState, Idea, Situation

Form = Literal["tags", "json"]

MOST_LISTED = 500
"""Of more solutions or ideas the latest ones are listed."""
_MOST_CHARS = 200_000
"""Of two codes that are compared."""
_MOST_WORDS = 2_000

EXAMPLE = Idea(
    "Refine: fold 3 scores 0.31 and the others 0.19 to 0.21 (step 14), and only fold 3 holds wards "
    "that no other fold has.",
    "Split by `ward_code` with GroupKFold(5) in place of KFold, and drop `ward_code` from what "
    "`make_features` returns.",
    "The test rows are of other wards, so both score and model must do without what is known of "
    "single wards.",
)
"""Shown where no JSON schema keeps the form. Small models copy it: that is no idea."""


def messages_of(
    state: HelpState, budget: int, form: Form = "tags", *, again: bool = False
) -> tuple[Message, ...]:
    """The request for one idea, in at most `budget` tokens as estimated; is it sent `again`?

    The task and solution.py are whole unless one takes over a quarter of the room; the trajectory
    gets what is left. Below `LEAST_BUDGET` the state is told in few words instead. Raises
    `AgentError` if the budget is too small even for that.
    """
    if budget < LEAST_BUDGET:
        return _compact(state, budget, form, again=again)
    system = Message("system", render("ideator/system", form=form, example=EXAMPLE), stable=True)
    room = budget - size([system])
    task = Message("user", _task(state.situation, room), stable=True)
    now = Message("user", _now(state, room, form), stable=again)
    frame = Message("user", render("ideator/story", account="-"))
    steps = state.situation.trajectory
    told = account(steps, budget - size([system, task, frame, now]))
    return system, task, Message("user", render("ideator/story", account=told)), now


def _compact(state: HelpState, budget: int, form: Form, *, again: bool) -> tuple[Message, Message]:
    if budget < LEAST_COMPACT:
        raise AgentError(f"{budget} tokens of context are too few to ask for an idea.")
    system = Message("system", render("ideator/compact_system", form=form), stable=True)
    room = budget - size([system, Message("user", "")])
    return system, Message("user", compact(state, room), stable=again)


class Asked:
    """What one proposal asks: the messages for each budget, written once, beside the event loop."""

    def __init__(self, state: HelpState, form: Form, *, again: bool) -> None:
        self.state = state
        self._form: Form = form
        self._again = again
        self._written: dict[int, tuple[Message, ...]] = {}
        self._pen = asyncio.Lock()

    async def messages(self, budget: int) -> tuple[Message, ...]:
        """The request in at most `budget` tokens. Raises `AgentError` as `messages_of` does."""
        if budget not in self._written:
            async with self._pen:
                if budget not in self._written:
                    write = partial(messages_of, self.state, budget, self._form, again=self._again)
                    self._written[budget] = await asyncio.to_thread(write)
        return self._written[budget]


def _task(situation: Situation, room: int) -> str:
    task = situation.task
    text = render(
        "ideator/task",
        task=task,
        description=cut(task.description, room // 4),
        sandbox=situation.sandbox,
    )
    return cut(text, max(room // 3, room // 4 + 300))


def _now(state: HelpState, room: int, form: Form) -> str:
    situation, request = state.situation, state.request
    asked = {name: cut(getattr(request, name), room // 24) for name in request.__struct_fields__}
    code, diff = situation.code, cut(_way_back(situation), room // 12)
    shown = None if code is None else cut(code.strip("\n"), room // 4)
    return render(
        "ideator/now",
        solutions=cut("\n".join(_scores(situation)), room // 12),
        ideas=cut("\n".join(_ideas(situation)), room // 12),
        code=shown,
        current=next((s.number for s in reversed(situation.solutions) if s.code == code), None),
        diff=diff,
        best=situation.best,
        fence=fence_around(f"{shown}\n{diff}"),
        remaining=situation.remaining,
        request=asked,
        form=form,
    )


def _scores(situation: Situation) -> Iterator[str]:
    """The best solution and the latest ones, a line each."""
    recent = situation.solutions[-MOST_LISTED:]
    earlier = len(situation.solutions) - len(recent)
    if earlier:
        yield f"- {earlier} earlier ones"
        best = situation.best_solution
        recent = recent if best is None or best in recent else (best, *recent)
    for solution in recent:
        scores = solution.scores
        public = f", public {scores.public}" if scores.public else ""
        mark = ", the best so far" if solution.number == situation.best else ""
        yield (
            f"- #{solution.number} (step {solution.step}): "
            f"validation {scores.validation or 'not printed'}{public}{mark}"
        )


def _ideas(situation: Situation) -> Iterator[str]:
    """Each of the latest ideas, and the solution that followed before the next one."""
    steps = situation.trajectory
    asked = [i for i, step in enumerate(steps) if step.idea is not None][-MOST_LISTED:]
    for start, end in pairwise([*asked, len(steps)]):
        made = next((s.solution for s in steps[start:end] if s.solution is not None), None)
        came = f"solution #{made}" if made else "no solution"
        yield f"- step {steps[start].number}: {_one_line(steps[start].idea)} -> {came}"


def _one_line(idea: Idea | None) -> str:
    words = " ".join(idea.action[:_MOST_WORDS].split()) if idea else ""
    return words if len(words) <= 200 else f"{words[:199]}…"


def _way_back(situation: Situation) -> str:
    """How the best solution differs from the code as it stands; empty if it does not."""
    best, code = situation.best_solution, situation.code
    if best is None or code is None or best.code == code:
        return ""
    return way_back(_head(code), _head(best.code))


def _head(code: str) -> str:
    """As much of it as can be compared."""
    return "".join(code[:_MOST_CHARS].splitlines(keepends=True)[:MOST_COMPARED])
