"""What is new at each step: what is left, the scores so far, the solution as it stands."""

from __future__ import annotations

from mle_ideator.actions import fenced
from mle_ideator.context.cutting import cut
from mle_ideator.messages import Message
from mle_ideator.prompts import render
from mle_ideator.solutions import way_back
from mle_ideator.types import Execute, SeekHelp, Situation, Step, Value

SHOWN = 12
"""Solutions whose scores are listed: the latest ones, and the best."""
WAIT_SHARE = 0.9
"""Of the time for one cell, that waiting for a job in it may take."""
STALLED = 4
"""Steps without a gain after which help is recommended."""


class Best(Value, frozen=True):
    """The best solution, where solution.py is another one by now."""

    step: Step | None
    """The step that shows it word by word, if one does."""
    text: str
    """It, or how going back to it would change solution.py, whichever is shorter."""
    is_diff: bool


def tail(situation: Situation, best_elsewhere: Best | None = None) -> Message:
    """What is left and what was reached."""
    listed = [s for s in situation.solutions[-SHOWN:] if s.number != situation.best]
    text = render(
        "codeact/tail",
        situation=situation,
        remaining=situation.remaining,
        best=situation.best_solution,
        elsewhere=best_elsewhere,
        others=listed,
        unlisted=len(situation.solutions) - len(listed) - bool(situation.best_solution),
        stalled=_stalled(situation),
        patience=STALLED,
        seen_in=solution_step(situation),
        duration=duration,
        wait_s=max(1, int(situation.remaining.step_seconds * WAIT_SHARE)),
    )
    return Message("user", text)


def current_solution(situation: Situation) -> Message | None:
    """solution.py whole, if there is one."""
    code = situation.code
    if code is None or not code.strip():
        return None
    return Message("user", render("codeact/solution", code=fenced(code.strip("\n"), "python")))


def best_elsewhere(situation: Situation, most: int) -> Best | None:
    """The best solution in at most so many tokens, unless solution.py is the same."""
    best, code = situation.best_solution, situation.code
    if best is None or _same(best.code, code):
        return None
    step = _showing(best.code, situation)
    diff = way_back(code, best.code) if code and code.strip() else ""
    is_diff = 0 < len(diff) < len(best.code)
    shown = cut(diff if is_diff else best.code.strip("\n"), most)
    return Best(step, fenced(shown, "diff" if is_diff else "python"), is_diff)


def _same(code: str, other: str | None) -> bool:
    return other is not None and code.strip("\n") == other.strip("\n")


def solution_step(situation: Situation) -> int:
    """Number of the latest step whose code holds solution.py word by word; 0 if none does."""
    step = _showing(situation.code or "", situation)
    return step.number if step else 0


def _showing(code: str, situation: Situation) -> Step | None:
    """The latest step whose code holds this one word by word."""
    code = code.strip("\n")
    if not code.strip():
        return None
    steps = (s for s in reversed(situation.trajectory) if _code(s) and code in _code(s))
    return next(steps, None)


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
