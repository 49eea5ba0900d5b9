"""A help state and an idea as numbers, which do not depend on the task's names.

They say what the offline ideator reads from the same text (`ideators.offline.reading`): where the
session stands, what the solution is made of, what was tried; what the idea asks for, whether that
is there already, and what promises most here; besides, the words of the idea, hashed.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import log1p, nan
from statistics import fmean

from mle_ideator.ideators.offline.facts import Attempt, Reading
from mle_ideator.ideators.offline.ranking import LEAST_GAIN, Candidate, weigh
from mle_ideator.ideators.offline.reading import read
from mle_ideator.operations import OPERATIONS, mentioned
from mle_ideator.types import HelpState, Idea

WORDS, WORD = 64, "word:"
"""Places that the words of an idea are hashed to, and what their names begin with."""

TABLE = ("gain_best", "gain_rank", "asked_new")
"""What the offline ideator's table alone tells."""
CORE = (
    *TABLE,
    *("gain_mean", "best_gain", "third_gain", "progress", "headroom"),
    *("asked_there", "asked_hopeless", "changes_model"),
    *("tried", "tried_here", "tried_helped", "since_help", "attempts_helped"),
)
"""Few enough for a line to be drawn through."""

DIRECTIONS: dict[str, int] = {
    "best_gain": 1,
    "gain_best": 1,
    "gain_mean": 1,
    "gain_rank": -1,
    "asked_there": -1,
    "asked_hopeless": -1,
    "tried_here": -1,
}
"""Which way some of them can only work: what promises more is not predicted to be worse."""
_TYPES = ("regression", "classification", "text", "image", "forecast", "time")
_KINDS = ("number", "category", "text", "date")
_WORD = re.compile(r"[a-z]{3,}")


@dataclass(frozen=True)
class StateFeatures:
    """What is worked out once for each help state."""

    reading: Reading
    gains: dict[str, float]
    """Of each operation that could be proposed, as the offline ideator expects."""
    numbers: dict[str, float]


def of_state(state: HelpState) -> StateFeatures:
    """Takes some milliseconds, on long states more."""
    reading = read(state)
    candidates = weigh(reading)
    gains = {candidate.operations[0]: candidate.gain for candidate in candidates}
    return StateFeatures(reading, gains, _state_numbers(state, reading, candidates))


def of_idea(state: StateFeatures, idea: Idea) -> dict[str, float]:
    """By name, in an order that is always the same; NaN where something can not be told."""
    return state.numbers | _idea_numbers(state, idea) | _hashed(idea.action)


def _hashed(text: str) -> dict[str, float]:
    """How often words come that are hashed to the same place, up to 3 times."""
    counts = [0.0] * WORDS
    for word in _WORD.findall(text.lower()):
        counts[zlib.crc32(word.encode()) % WORDS] += 1.0
    return {f"{WORD}{place}": min(count, 3.0) for place, count in enumerate(counts)}


# ----------------------------------------------------------------------------- the help state


def _state_numbers(
    state: HelpState, reading: Reading, candidates: Sequence[Candidate]
) -> dict[str, float]:
    situation, attempts = state.situation, reading.attempts
    gains = sorted((candidate.gain for candidate in candidates), reverse=True)
    helped = [attempt.improved(reading.task.min_delta) for attempt in attempts]
    return {
        "steps": float(len(situation.trajectory)),
        "solutions": float(len(situation.solutions)),
        "scored": float(reading.score is not None),
        "astray": float(bool(reading.astray)),
        "progress": reading.progress,
        "slow": float(reading.slow),
        "deep": float(reading.deep),
        "gap": reading.gap,
        "cell_seconds": reading.seconds,
        "headroom": _over_baseline(reading),
        "attempts": float(len(attempts)),
        "attempts_helped": fmean(helped) if helped else nan,
        "since_help": float(_since(helped)),
        "recipe": float(len(reading.recipe)),
        "best_gain": gains[0] if gains else 0.0,
        "third_gain": gains[2] if len(gains) > 2 else 0.0,
        "candidates": float(len(gains)),
        "rows": log1p(reading.task.rows[0]),
        "higher_is_better": float(reading.task.metric.higher_is_better),
        **{f"type:{name}": float(name in reading.task.type) for name in _TYPES},
        **{f"columns:{kind}": float(len(reading.columns(kind))) for kind in _KINDS},
    }


def _over_baseline(reading: Reading) -> float:
    """How much better than the trivial solution the best score is, as a share of the latter."""
    trivial = reading.task.baseline.public
    if reading.score is None or trivial is None:
        return nan
    gain = (reading.score.value - trivial.value) / max(abs(trivial.value), 1e-9)
    return max(-2.0, min(2.0, gain if trivial.higher_is_better else -gain))


def _since(helped: Sequence[bool]) -> int:
    """Attempts since the last one that helped."""
    return next((i for i, good in enumerate(reversed(helped)) if good), len(helped))


# ----------------------------------------------------------------------------------- the idea


def _idea_numbers(state: StateFeatures, idea: Idea) -> dict[str, float]:
    reading = state.reading
    asked = tuple(operation.name for operation in mentioned(idea.action))
    new = [name for name in asked if name not in reading.recipe]
    gains = [state.gains[name] for name in new if name in state.gains]
    tried = [a for a in reading.attempts if a.operations & set(new) and not a.untried]
    unknown = 0.0 if asked else LEAST_GAIN
    better = sum(gain > max(gains, default=0.0) for gain in state.gains.values())
    return {
        "asked": float(len(asked)),
        "asked_new": float(len(new)),
        "asked_there": float(len(asked) - len(new)),
        "asked_hopeless": float(sum(state.gains.get(name, 0.0) <= 0.0 for name in new)),
        "gain_best": max(gains, default=unknown),
        "gain_mean": fmean(gains) if gains else unknown,
        "gain_rank": better / max(1, len(state.gains)),
        "changes_model": float(any(name.startswith("model_") for name in new)),
        "tried": float(len(tried)),
        **_outcomes(tried, reading),
        "reverts": float(idea.reverts_to is not None),
        "to_best": float(reading.base is not None and idea.reverts_to == reading.base.number),
        "words": float(len(_WORD.findall(idea.action.lower()))),
        "quoted": float(idea.action.count("`") // 2),
        **{f"asks:{name}": float(name in asked) for name in OPERATIONS},
    }


def _outcomes(tried: Sequence[Attempt], reading: Reading) -> dict[str, float]:
    helped = sum(attempt.improved(reading.task.min_delta) for attempt in tried)
    return {
        "tried_here": float(sum(attempt.here for attempt in tried)),
        "tried_helped": float(helped),
        "tried_failed": float(sum(attempt.failed for attempt in tried)),
    }
