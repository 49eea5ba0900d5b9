"""A candidate as an idea, in the form and with the care that a model would give it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mle_ideator.ideators.offline.facts import Attempt, Reading
from mle_ideator.ideators.offline.hints import HINTS, Hint
from mle_ideator.ideators.offline.ranking import Candidate
from mle_ideator.operations import OPERATIONS, mentioned
from mle_ideator.recipes import Column
from mle_ideator.types import Idea

_HINTS = {hint.operation: hint for hint in HINTS}
_MAX_COLUMNS = 6


def write(candidate: Candidate, reading: Reading) -> Idea:
    """The idea that proposes a candidate, with the numbers of this state."""
    return Idea(
        analysis=analysis(reading),
        action=action(candidate.operations, reading),
        rationale=_sentence(candidate.reason) + _evidence(candidate),
    )


def analysis(reading: Reading) -> str:
    """Where to build, what stands there, what was tried."""
    parts = [_opening(reading), _what_stands(reading), _tried(reading)]
    return " ".join(part for part in parts if part)


def action(operations: Sequence[str], reading: Reading) -> str:
    """The operations as instructions, the model first, with the columns they are about."""
    in_order = sorted(operations, key=lambda name: not name.startswith("model_"))
    steps = [_instruction(_HINTS[name], reading) for name in in_order]
    return " ".join([*steps, "Keep everything else as it is."])


def _instruction(hint: Hint, reading: Reading) -> str:
    text = OPERATIONS[hint.operation].action
    columns = hint.columns(reading) if hint.columns else ()
    names = _harmless(columns)
    return f"{text} Columns: {names}." if names else text


def _harmless(columns: Iterable[Column]) -> str:
    """The first few column names, without those that would read as another instruction."""
    quoted = [f"`{c.name}`" for c in columns]
    plain = [name for name in quoted if not mentioned(name) and "\n" not in name]
    more = len(quoted) - _MAX_COLUMNS
    return ", ".join(plain[:_MAX_COLUMNS]) + (f" and {more} more" if plain and more > 0 else "")


def _opening(reading: Reading) -> str:
    if reading.base is None:
        return "Refine: there is no scored solution yet."
    if reading.astray:
        return f"Revert to #{reading.base.number}: {reading.astray}."
    score = f" with {reading.task.metric.name} {reading.score}" if reading.score else ""
    return f"Refine: solution #{reading.base.number}{score} is the one to build on."


def _what_stands(reading: Reading) -> str:
    if not reading.recipe:
        return ""
    return f"It has {_listed(reading.recipe)}."


def _tried(reading: Reading) -> str:
    said = [_outcome(a, reading) for a in reading.attempts[-3:] if not a.untried]
    return f"So far: {'; '.join(said)}." if said else ""


def _outcome(attempt: Attempt, reading: Reading) -> str:
    what = _listed(attempt.operations) if attempt.operations else "an idea without an operation"
    if attempt.failed:
        return f"{what} brought no valid submission"
    if attempt.refused and attempt.refused == attempt.operations:
        return f"{what} was not carried out"
    if attempt.after is None:
        return f"{what} brought no score"
    verdict = "helped" if attempt.improved(reading.task.min_delta) else "did not help"
    before = "" if attempt.before is None else f"{attempt.before} → "
    return f"{what} {verdict} ({before}{attempt.after})"


def _evidence(candidate: Candidate) -> str:
    told = {f.name: f for f in candidate.factors if f.name in ("evidence", "kin")}
    notes = [f.why for f in told.values() if f.value != 1.0]
    return " " + _sentence("in this session " + "; ".join(notes)) if notes else ""


def _listed(operations: Iterable[str]) -> str:
    return ", ".join(name.replace("_", " ") for name in sorted(operations))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."
