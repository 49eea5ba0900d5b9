"""A help state in few words, for models that can not read it whole.

Only what decides which idea is good is told, in words that come again and again: no title, no name
of a column, no code. A tokenizer of a thousand words makes a hundred tokens or two of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from mle_ideator.context import tokens_of
from mle_ideator.context.cutting import cut
from mle_ideator.ideators.offline.codes import made_of
from mle_ideator.ideators.offline.facts import Attempt, Reading
from mle_ideator.ideators.offline.history import score_of
from mle_ideator.ideators.offline.reading import read
from mle_ideator.prompts import render
from mle_ideator.types import HelpRequest, HelpState, Score, Situation, Solution

LEAST_COMPACT = 200
"""Tokens below which not even a compact state can be told."""
_MOST_CHARS = 20_000
"""Of a text of which only the beginning is told."""
_LATEST = 4
"""Scores that are listed where no recipe can be read."""


class _Scale(NamedTuple):
    """How much is told of what can be long."""

    tried: int
    """Attempts, the latest ones."""
    words: int
    """Tokens of each text that somebody wrote."""


_SCALES = (_Scale(16, 48), _Scale(12, 32), _Scale(8, 24), _Scale(4, 12), _Scale(2, 0), _Scale(0, 0))


def compact(state: HelpState, room: int) -> str:
    """The help state in at most `room` tokens, as estimated; the earliest attempts go first."""
    reading = read(state)
    facts = _facts(reading, state.situation)
    tried = list(_tried(reading, state.situation))
    for scale in _SCALES:
        text = render("ideator/compact", **facts, **_texts(state, reading, tried, scale))
        if tokens_of(text) <= room:
            return text
    return cut(text, room)


def _facts(reading: Reading, situation: Situation) -> dict[str, Any]:
    """What is short whatever the state."""
    task = reading.task
    return {
        "metric": _start(task.metric.name, 12),
        "direction": "higher" if task.metric.higher_is_better else "lower",
        "prediction": _prediction(reading),
        "type": _start(task.type, 12),
        "rows": _about(reading.rows),
        "columns": list(_columns(reading)),
        "special": list(_special(reading)),
        "best": _standing("best", situation.best_solution),
        "now": _now(reading, situation),
        "recipe": [_named(name) for name in sorted(reading.recipe)],
        "left": f"{situation.remaining.help_requests} ideas, {_about(int(reading.seconds))} s a run"
        + (", a run took too long" if reading.slow else ""),
    }


def _texts(
    state: HelpState, reading: Reading, tried: Sequence[str], scale: _Scale
) -> dict[str, Any]:
    """What is as long as its scale allows."""
    earlier = len(tried) - scale.tried
    told = [*([f"{earlier} earlier"] if earlier > 0 else []), *tried[max(0, earlier) :]]
    unread = not reading.recipe
    return {
        "tried": told,
        "scores": _latest_scores(state.situation) if unread else [],
        "about": "" if reading.profile else _start(reading.task.description, scale.words),
        "asks": _asked(state.request, scale.words, whole=unread),
    }


# ---------------------------------------------------------------------------------- the data


def _prediction(reading: Reading) -> str:
    classes = f" of {len(reading.task.classes)} classes" if reading.task.classes else ""
    several = f", {reading.targets} targets" if reading.targets > 1 else ""
    return f"{reading.task.prediction}{classes}{several}"


def _columns(reading: Reading) -> Iterator[str]:
    """How many there are of each kind."""
    kinds = {
        "numbers": len(reading.numbers) + reading.unlisted,
        "categories": len(reading.categories),
        "dates": len(reading.dates),
        "texts": len(reading.texts),
    }
    yield from (f"{name} {count}" for name, count in kinds.items() if count)


def _special(reading: Reading) -> Iterator[str]:
    """What calls for one operation more than for another."""
    counts = {
        "missing": len(reading.missing),
        "skewed": len(reading.skewed),
        "many levels": len(reading.high_cardinality),
        "side tables": len(reading.side_tables),
    }
    yield from (f"{name} {count}" for name, count in counts.items() if count)
    if not reading.classification and reading.target_skew > 1:
        yield "target skewed"
    if not reading.classification and reading.target_low >= 0:
        yield "target positive"
    if reading.time:
        yield "test between in time" if reading.between else "test later in time"
    if reading.group and not reading.time:
        yield "test of new groups"
    if reading.image:
        yield "images"
    if reading.text and not reading.texts:
        yield "texts"
    if reading.deep:
        yield "deep networks"
    if abs(reading.gap) > 0.1:
        yield "validation too good" if reading.gap > 0 else "validation too bad"


# --------------------------------------------------------------------------- where it stands


def _standing(word: str, solution: Solution | None) -> str:
    if solution is None:
        return ""
    return f"{word} #{solution.number} {_figure(_score(solution))}"


def _now(reading: Reading, situation: Situation) -> str:
    """The code as it stands, where that is not the best."""
    latest = situation.solutions[-1] if situation.solutions else None
    if latest is None or latest.number == situation.best:
        return ""
    astray = " to be left" if reading.astray and latest.code == situation.code else ""
    return _standing("latest", latest) + astray


def _latest_scores(situation: Situation) -> list[str]:
    recent = situation.solutions[-_LATEST:]
    return [f"#{solution.number} {_figure(_score(solution))}" for solution in recent]


def _tried(reading: Reading, situation: Situation) -> Iterator[str]:
    """What was tried and how it ended: the implementer's own first steps, then the ideas."""
    ideas = [step.number for step in situation.trajectory if step.idea is not None]
    first = ideas[0] if ideas else len(situation.trajectory) + 1
    yield from _own([s for s in situation.solutions if s.step < first], reading.task.min_delta)
    for attempt in reading.attempts:
        what = " + ".join(map(_named, sorted(attempt.operations))) or "something"
        yield f"{what} {_ending(attempt, reading.task.min_delta)}"


def _own(solutions: Sequence[Solution], min_delta: float) -> Iterator[str]:
    """What each solution has that the best one before it has not."""
    made = made_of(solution.code for solution in solutions)
    best: Solution | None = None
    for solution in solutions:
        found = made.get(solution.code)
        score, before = _score(solution), _score(best) if best else None
        if best is not None and found is not None:
            known = made.get(best.code)
            new = found.operations - (known.operations if known else frozenset())
            if new:
                yield f"{' + '.join(map(_named, sorted(new)))} {_verdict(score, before, min_delta)}"
        if best is None or (score and score.better_than(before)):
            best = solution


def _ending(attempt: Attempt, min_delta: float) -> str:
    if attempt.untried:
        return "not reached"
    if attempt.failed:
        return "failed"
    if attempt.refused and attempt.refused == attempt.operations:
        return "not done"
    return _verdict(attempt.after, attempt.before, min_delta)


def _verdict(after: Score | None, before: Score | None, min_delta: float) -> str:
    if after is None:
        return "unscored"
    if after.better_than(before, min_delta):
        return "better"
    return "worse" if before is not None and before.better_than(after, min_delta) else "same"


# -------------------------------------------------------------------------------------- words


def _asked(request: HelpRequest, most: int, *, whole: bool) -> str:
    """The goal; all of the request where the code does not tell what stands."""
    texts: Iterable[str] = (request.goal,)
    if whole:
        texts = (request.problem, request.attempts, request.goal)
    return " / ".join(text for text in (_start(text, most) for text in texts) if text)


def _start(text: str, most: int) -> str:
    """Its beginning on one line, in so many tokens; what is missing is counted."""
    line = " ".join(text[:_MOST_CHARS].split())
    kept = len(line)
    while kept and tokens_of(line[:kept]) > most:
        kept = min(kept - 1, kept * most // tokens_of(line[:kept]))
    missing = len(text) - len(text[:_MOST_CHARS]) + len(line) - kept
    return f"{line[:kept].rstrip()} …{missing} more" if missing and kept else line[:kept]


def _named(operation: str) -> str:
    return operation.removeprefix("model_").replace("_", " ")


def _score(solution: Solution) -> Score | None:
    """As it guides the implementer: validation, else public."""
    return score_of(solution, "validation") or score_of(solution, "public")


def _figure(score: Score | None) -> str:
    return "unscored" if score is None else str(score)


def _about(number: int) -> str:
    """Two digits are enough."""
    return str(int(float(f"{number:.2g}")))
