"""What is new at each step: what is left, the scores so far, the solution as it stands."""

from __future__ import annotations

from mle_ideator.actions import fenced
from mle_ideator.messages import Message
from mle_ideator.prompts import render
from mle_ideator.types import Execute, SeekHelp, Situation, Step

SHOWN = 12
"""Solutions whose scores are listed: the latest ones, and the best."""
STALLED = 4
"""Steps without a gain after which help is recommended."""


def tail(situation: Situation) -> Message:
    """What is left and what was reached."""
    listed = [s for s in situation.solutions[-SHOWN:] if s.number != situation.best]
    text = render(
        "codeact/tail",
        situation=situation,
        remaining=situation.remaining,
        best=situation.best_solution,
        others=listed,
        unlisted=len(situation.solutions) - len(listed) - bool(situation.best_solution),
        stalled=_stalled(situation),
        patience=STALLED,
        seen_in=solution_step(situation),
        duration=duration,
    )
    return Message("user", text)


def current_solution(situation: Situation) -> Message | None:
    """solution.py whole, if there is one."""
    code = situation.code
    if code is None or not code.strip():
        return None
    return Message("user", render("codeact/solution", code=fenced(code.strip("\n"), "python")))


def solution_step(situation: Situation) -> int:
    """Number of the latest step whose code holds solution.py word by word; 0 if none does."""
    code = (situation.code or "").strip("\n")
    if not code.strip():
        return 0
    steps = (s for s in reversed(situation.trajectory) if _code(s) and code in _code(s))
    return next((step.number for step in steps), 0)


def _code(step: Step) -> str:
    return step.action.code if isinstance(step.action, Execute) else ""


def _stalled(situation: Situation) -> int:
    """Steps since the best solution was made or help came, whichever is later."""
    count = 0
    for step in reversed(situation.trajectory):
        best = situation.best is not None and step.solution == situation.best
        if best or isinstance(step.action, SeekHelp):
            break
        count += 1
    return count


def duration(seconds: float) -> str:
    """Rounded down: what is said to be left is there."""
    whole = int(seconds)
    return f"{whole} s" if whole < 120 else f"{whole // 60} min"
