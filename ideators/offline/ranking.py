"""Which operation to try next: the expected gain of each, as a product that explains itself."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from math import prod

from mle_ideator.ideators.offline.facts import Attempt, Reading
from mle_ideator.ideators.offline.hints import HINTS, Hint
from mle_ideator.ideators.offline.reading import read
from mle_ideator.operations import OPERATIONS
from mle_ideator.types import HelpState, Value

LEAST_GAIN = 0.03
"""What promises less than this is not worth a help request."""

_KIN: tuple[frozenset[str], ...] = tuple(
    frozenset(names.split())
    for names in (
        "interactions ratios group_aggregates",
        "target_encoding frequency_encoding rare_levels group_aggregates",
        "lag_features rolling_features date_parts",
        "text_words text_characters text_svd text_statistics",
        "image_gradients image_shifts pca",
        "more_capacity tune more_regularisation",
        "bag_seeds blend stack",
        "class_weights tune_threshold",
        "clip_outliers impute_missing rare_levels",
    )
)
"""Operations of which one tells something about the other."""

_ANY_MODEL = frozenset(
    (
        *("class_weights", "more_regularisation", "more_capacity", "tune"),
        *("bag_seeds", "blend", "tune_threshold", "calibrate"),
    )
)
"""What can be done to a deep network as well; the rest would put a weaker model in its place."""

_MOST_TOLD = 8
"""So many of the kin's outcomes are told, the latest ones."""

_SECONDS = {"cheap": 5.0, "moderate": 15.0, "heavy": 40.0}
"""What a cell needs at least for an operation of that cost to be worth starting."""


class Factor(Value, frozen=True):
    """One factor of an expected gain, and where it comes from."""

    name: str
    value: float
    why: str


class Candidate(Value, frozen=True):
    """An operation, perhaps with one that belongs with it, and what to expect of it."""

    operations: tuple[str, ...]
    factors: tuple[Factor, ...]
    reason: str

    @property
    def gain(self) -> float:
        """The expected gain; 0 for what must not be proposed."""
        return prod(factor.value for factor in self.factors)

    def explain(self) -> str:
        """The arithmetic in one line."""
        parts = " × ".join(f"{f.name} {f.value:.2f} ({f.why})" for f in self.factors)
        return f"{' + '.join(self.operations)}: {self.gain:.3f} = {parts}"


def rank(state: HelpState) -> list[Candidate]:
    """Every applicable operation that is not in the recipe, the best expected gain first."""
    return weigh(read(state))


def applicable(reading: Reading) -> list[Hint]:
    """The hints whose operation fits this data and is not in the recipe."""
    return [
        hint
        for hint in HINTS
        if hint.operation not in reading.recipe
        and (hint.operation in _ANY_MODEL or not reading.deep)
        and hint.fits(reading) > 0
    ]


def weigh(reading: Reading) -> list[Candidate]:
    """The same for a state that was read already. Equal gains are ordered by the session's seed."""
    hints = applicable(reading)
    by_name = {hint.operation: hint for hint in hints}
    candidates = [_candidate(hint, by_name, reading) for hint in hints]
    return sorted(candidates, key=lambda c: (-c.gain, _dice(reading.seed, c.operations[0])))


def _candidate(hint: Hint, others: dict[str, Hint], reading: Reading) -> Candidate:
    factors = (
        Factor("prior", hint.prior, "how often it helped elsewhere"),
        Factor("fit", hint.fits(reading), hint.reason(reading)),
        *_evidence(hint.operation, reading),
        *_switch(hint, reading),
        _timing(hint.operation, reading),
        _affordable(hint, reading),
    )
    partner = others.get(hint.partner or "")
    together = partner is not None and not _tried(partner.operation, reading.attempts)
    operations = (hint.operation, *([hint.partner] if together and hint.partner else []))
    return Candidate(operations, factors, hint.reason(reading))


# -------------------------------------------------------------------------------- evidence


def _evidence(operation: str, reading: Reading) -> Iterable[Factor]:
    yield _own_evidence(operation, reading)
    yield _kin_evidence(operation, reading)


def _own_evidence(operation: str, reading: Reading) -> Factor:
    tried = _tried(operation, reading.attempts)
    if any(a.failed for a in tried):
        return Factor("evidence", 0.0, "it failed in this session")
    if any(operation in a.refused for a in tried):
        return Factor("evidence", 0.0, "it was asked for and not carried out")
    if any(a.here for a in tried) or _with(operation, reading.recipe) in reading.known_recipes:
        return Factor("evidence", 0.0, "it was tried on this very solution")
    misses = sum(not a.improved(reading.task.min_delta) for a in tried)
    if misses:
        return Factor("evidence", 0.35**misses, f"it did not help {misses}× on other solutions")
    if tried:
        return Factor("evidence", 1.3, "it helped on another solution")
    return Factor("evidence", 1.0, "not tried yet")


def _kin_evidence(operation: str, reading: Reading) -> Factor:
    kin = frozenset[str]().union(*(group for group in _KIN if operation in group)) - {operation}
    value, seen = 1.0, []
    for attempt in reading.attempts:
        told = (attempt.operations - attempt.refused) & kin
        if attempt.untried or not told or operation in attempt.operations:
            continue
        helped = attempt.improved(reading.task.min_delta)
        value *= 1.2 if helped else 0.8
        names = ", ".join(sorted(told))
        seen.append(f"{names} {'helped' if helped else 'did not help'}")
    return Factor(
        "kin",
        min(1.5, max(0.4, value)),
        "; ".join(seen[-_MOST_TOLD:]) or "nothing like it was tried",
    )


def _tried(operation: str, attempts: Iterable[Attempt]) -> list[Attempt]:
    return [a for a in attempts if operation in a.operations and not a.untried]


def _with(operation: str, recipe: frozenset[str]) -> frozenset[str]:
    """The recipe that the operation would lead to: a model takes the place of the model."""
    if operation.startswith("model_"):
        recipe = frozenset(name for name in recipe if not name.startswith("model_"))
    return recipe | {operation}


# --------------------------------------------------------------------------- time and place


def _switch(hint: Hint, reading: Reading) -> Iterable[Factor]:
    """A model takes the place of another, so it has to promise more than that one."""
    current = next((h for h in HINTS if h.operation == reading.model), None)
    if current and hint.operation.startswith("model_"):
        more = hint.prior * hint.fits(reading) > current.prior * current.fits(reading)
        why = f"it suits this data {'better' if more else 'no better'} than {current.operation}"
        yield Factor("instead", 1.0 if more else 0.5, why)


def _timing(operation: str, reading: Reading) -> Factor:
    p = reading.progress
    match OPERATIONS[operation].category:
        case "ensembling":
            return Factor("timing", 0.35 + 0.85 * p, "ensembles come late")
        case "model choice":
            return Factor("timing", 1.15 - 0.65 * p, "the model comes early")
        case "hyper-parameters":
            return Factor("timing", 0.7 + 0.4 * p, "settings come after features")
        case "post-processing":
            return Factor("timing", 0.85 + 0.3 * p, "post-processing is for a good model")
        case _:
            return Factor("timing", 1.0, "at any time")


def _affordable(hint: Hint, reading: Reading) -> Factor:
    if reading.seconds < _SECONDS[hint.cost]:
        return Factor("time", 0.1, f"only {reading.seconds:.0f} s are left for a cell")
    if reading.slow and hint.cost == "heavy":
        return Factor("time", 0.3, "a cell has run into its time limit")
    return Factor("time", 1.0, "affordable")


def _dice(seed: int, operation: str) -> int:
    return zlib.crc32(f"{seed}:{operation}".encode())
