"""Steps in a line each, and many steps in one paragraph, by rule."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from mle_ideator.context.cutting import cut
from mle_ideator.context.plan import Plan
from mle_ideator.context.tokens import tokens_of
from mle_ideator.types import Execute, Finish, Malformed, SeekHelp, Step

_WIDTH = 100
_READ = 20_000
"""Characters at an end of a text in which what matters is sought."""
_VERDICT = re.compile(
    r"\[runtime\] (Solution #(\d+) accepted: .*|submission\.csv was not accepted)"
)
_BEST = "; the best so far."


@lru_cache(maxsize=4096)
def condensed(step: Step) -> str:
    """A step in one line: what was done, what came of it."""
    match step.action:
        case Execute(language=language, code=code):
            did = f"{language}, {_first_words(step.thought) or _first_words(code) or 'empty'}"
            came = f"{step.observation.status} after {step.observation.duration_s:.1f} s"
            if step.observation.status == "error":
                came += f", {_last_words(step.observation.text)}"
        case SeekHelp(request=request):
            did = f"help sought, {_first_words(request.problem)}"
            came = f"idea: {_first_words(step.idea.action)}" if step.idea else "no idea came"
        case Malformed(reason=reason):
            did, came = "unreadable reply", _first_words(reason)
        case Finish(reason=reason):
            did, came = "finish", _first_words(reason)
    return "; ".join([f"step {step.number}: {did} -> {came}", *_verdicts(step)])


@lru_cache(maxsize=4096)
def line_of(step: Step, most: int) -> tuple[str, int]:
    """A step in one line of at most so many tokens, and how many it takes, its end included."""
    line = cut(condensed(step), most - 1)
    return line, tokens_of(line) + 1


def shortened(steps: Sequence[Step], plan: Plan, most: int) -> list[str]:
    """What a plan leaves of the steps that are not whole: the summary, then blocks of lines.

    The summary and each line take at most so many tokens.
    """
    texts = [cut(summary(steps[: plan.summarised]), most)] if plan.summarised else []
    starts = (plan.summarised, *plan.blocks)
    for start, end in zip(starts, plan.blocks, strict=False):
        lines = [line_of(step, most)[0] for step in steps[start:end]]
        texts.append("\n".join([f"Steps {start + 1} to {end}, a line each:", *lines]))
    return texts


def summary(steps: Sequence[Step]) -> str:
    """Many steps in one paragraph: how many of which kind, and the best solution."""
    kinds = Counter(_kind(step) for step in steps)
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    solutions = [step for step in steps if step.solution is not None]
    verdicts = (verdict for step in reversed(solutions) for verdict in _verdicts(step))
    best = next((verdict for verdict in verdicts if _BEST in verdict), None)
    text = f"Steps {steps[0].number} to {steps[-1].number} in short: {counts}"
    if solutions:
        text += f"; solutions #{solutions[0].solution} to #{solutions[-1].solution}"
    return f"{text}. The best of them: {best}" if best else f"{text}."


def _kind(step: Step) -> str:
    match step.action:
        case Execute():
            return f"cells ({step.observation.status})"
        case SeekHelp():
            return "ideas" if step.idea else "help requests without an idea"
        case _:
            return "replies without an action"


def _verdicts(step: Step) -> list[str]:
    """What the runtime said of the submission that a step wrote; a cell may print the like."""
    found = map(_VERDICT.match, reversed(step.observation.text[-_READ:].splitlines()))
    number = None if step.solution is None else str(step.solution)
    said = [match[1] for match in found if match and match[2] == number]
    return said[:1] if isinstance(step.action, Execute) else []


def _first_words(text: str) -> str:
    start = text.lstrip()[:_READ]
    return _cut(next((line.strip() for line in start.splitlines()), ""))


def _last_words(text: str) -> str:
    """The last line of a traceback: the error itself."""
    lines = [line.strip() for line in text[-_READ:].splitlines()]
    said = [line for line in lines if line and not line.startswith(("[runtime]", "- "))]
    return _cut(said[-1] if said else "no output")


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"
