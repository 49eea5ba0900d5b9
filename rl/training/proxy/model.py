"""The proxy: the chance that an idea improves a help state, learnt from executed ones."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from mle_ideator.errors import UsageError
from mle_ideator.files import replace_file
from mle_ideator.rl.training.proxy import features
from mle_ideator.rl.training.proxy.examples import Example
from mle_ideator.rl.training.proxy.features import StateFeatures
from mle_ideator.rl.training.proxy.linear import Line, line_through
from mle_ideator.rl.training.proxy.quality import (
    Flags,
    Floats,
    Quality,
    log_loss,
    quality_of,
    threshold_at,
)
from mle_ideator.rl.training.proxy.trees import Trees, fitted
from mle_ideator.types import HelpState, Idea

LEAST_EXAMPLES = 40
"""With fewer nothing is learnt that could be relied on."""
_FOLDS = 8
_WORDS_FROM = 1000
"""With fewer examples the words of ideas did more harm than good (docs/proxy.md)."""
_ISOTONIC_FROM = 1000
"""With fewer examples calibration is a sigmoid; from here on any rising curve."""
_KNOTS = 256
_VERSION = 1


FORMS: dict[str, tuple[tuple[str, ...], bool]] = {
    "table": (features.TABLE, False),
    "line": (features.CORE, False),
    "line and trees": (features.CORE, True),
}
"""What may be fitted, the fewer to be learnt the earlier: the features of a line, and whether there
are trees too, on all features; log-odds are then the mean of both."""


@dataclass(frozen=True)
class Fit:
    """From features to log-odds."""

    line: Line
    trees: Trees | None

    def raw(self, rows: Floats) -> Floats:
        line = self.line.raw(rows)
        return line if self.trees is None else (line + self.trees.raw(rows)) / 2

    def arrays(self) -> dict[str, Any]:
        parts = {"line": self.line, "trees": self.trees}
        return {
            f"{part}.{name}": array
            for part, fit in parts.items()
            if fit is not None
            for name, array in fit.arrays().items()
        }

    @classmethod
    def from_arrays(cls, found: dict[str, Any]) -> Self:
        """Raises `KeyError` or `ValueError`."""
        trees = _part(found, "trees.")
        return cls(
            Line.from_arrays(_part(found, "line.")), Trees.from_arrays(trees) if trees else None
        )


def _part(found: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {
        name.removeprefix(prefix): array for name, array in found.items() if name.startswith(prefix)
    }


@dataclass(frozen=True)
class Proxy:
    """Predicts whether an idea improves a help state when it is executed once."""

    columns: tuple[str, ...]
    """Names of the features that it goes by."""
    fit_to: Fit
    knots: tuple[Floats, Floats]
    """The calibration: log-odds, and the chance at each; straight between."""
    held_out: tuple[Floats, Flags]
    """Of the examples, out of fold: the chance that was predicted, and whether they improved."""
    quality: Quality

    @classmethod
    def fit(cls, examples: Sequence[Example], seed: int = 0) -> Self:
        """Learn from examples of at least two tasks. The same examples give the same proxy.

        Raises `UsageError` if there are too few, or all of one kind.
        """
        improved = np.array([example.improved for example in examples], bool)
        tasks = np.array([example.task for example in examples])
        _check(improved, tasks)
        named = [features.of_idea(features.of_state(e.state), e.idea) for e in examples]
        columns = tuple(
            name
            for name in named[0]
            if len(named) >= _WORDS_FROM or not name.startswith(features.WORD)
        )
        rows = _rows(named, columns)
        folds = _folds(tasks, seed)
        told = {form: _out_of_fold(form, rows, improved, columns, folds, seed) for form in FORMS}
        chances = {
            form: _calibrated_out_of_fold(raw, improved, folds) for form, raw in told.items()
        }
        form = min(FORMS, key=lambda form: log_loss(chances[form], improved))
        seconds = np.array([example.seconds for example in examples])
        return cls(
            columns=columns,
            fit_to=_fit(form, rows, improved, columns, seed),
            knots=_calibration(told[form], improved),
            held_out=(chances[form], improved),
            quality=quality_of(form, chances[form], improved, tasks, seconds),
        )

    def predict(self, state: HelpState, ideas: Sequence[Idea]) -> list[float]:
        """The chance that each idea improves this help state."""
        return self.predict_from(features.of_state(state), ideas)

    def predict_from(self, state: StateFeatures, ideas: Sequence[Idea]) -> list[float]:
        """The same for a help state whose features were worked out already."""
        rows = _rows([features.of_idea(state, idea) for idea in ideas], self.columns)
        chances: list[float] = np.interp(self.fit_to.raw(rows), *self.knots).tolist()
        return chances

    def threshold(self, false_skip: float) -> float:
        """The chance below which, on tasks not seen, at most this share of all ideas that improve
        lies."""
        if not 0 <= false_skip < 1:
            raise UsageError("proxy: the false-skip rate must be at least 0 and less than 1.")
        return threshold_at(*self.held_out, false_skip)

    # ----------------------------------------------------------------------------------- on disk

    def save(self, file: Path) -> None:
        """Write it as arrays of numbers (`.npz`), whole or not at all."""
        arrays: dict[str, Any] = {
            "version": np.array(_VERSION),
            "columns": np.array(self.columns),
            "quality": np.array(msgspec.json.encode(self.quality).decode()),
            "knots": np.stack(self.knots),
            "predicted": self.held_out[0],
            "improved": self.held_out[1],
            **self.fit_to.arrays(),
        }
        content = io.BytesIO()
        np.savez_compressed(content, **arrays)
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, content.getvalue())

    @classmethod
    def load(cls, file: Path) -> Self:
        """Read one; nothing is unpickled. Raises `UsageError` for what is none or of another
        version."""
        try:
            with file.open("rb") as opened, np.load(opened, allow_pickle=False) as found:
                return cls._from(dict(found))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise UsageError(f"{file} is no proxy that can be read ({error}).") from error

    @classmethod
    def _from(cls, found: dict[str, Any]) -> Self:
        if int(found["version"].item()) != _VERSION:
            raise ValueError("it was made by another version; fit it anew")
        return cls(
            columns=tuple(str(name) for name in found["columns"]),
            fit_to=Fit.from_arrays(found),
            knots=(found["knots"][0], found["knots"][1]),
            held_out=(found["predicted"], found["improved"]),
            quality=msgspec.json.decode(str(found["quality"]), type=Quality),
        )


class Predictor:
    """A proxy for one rollouts' help states, each worked out once as long as it is remembered."""

    def __init__(self, proxy: Proxy, help_state: Callable[[str], HelpState]) -> None:
        self.proxy = proxy
        self._state = lru_cache(4096)(lambda id: features.of_state(help_state(id)))

    def chance(self, state: str, idea: Idea) -> float:
        return self.proxy.predict_from(self._state(state), [idea])[0]


def _fit(form: str, rows: Floats, improved: Flags, columns: Sequence[str], seed: int) -> Fit:
    names, with_trees = FORMS[form]
    line = line_through(rows, improved, np.array([columns.index(name) for name in names]))
    directions = [features.DIRECTIONS.get(name, 0) for name in columns]
    return Fit(line, fitted(rows, improved, directions, seed) if with_trees else None)


def _out_of_fold(
    form: str,
    rows: Floats,
    improved: Flags,
    columns: Sequence[str],
    folds: NDArray[np.int64],
    seed: int,
) -> Floats:
    """Each fold's log-odds by a fit that has not seen it."""
    raw = np.zeros(len(rows))
    for fold in sorted(set(folds.tolist())):
        out = folds == fold
        raw[out] = _fit(form, rows[~out], improved[~out], columns, seed).raw(rows[out])
    return raw


def _check(improved: Flags, tasks: NDArray[np.str_]) -> None:
    kinds = f"{len(improved)} executed ideas, of which {improved.sum()} improved"
    if len(improved) < LEAST_EXAMPLES or len(set(improved.tolist())) < 2:
        raise UsageError(
            f"a proxy can not be learnt from {kinds}: it takes at least {LEAST_EXAMPLES}, "
            "some that improved and some that did not."
        )
    if len(set(tasks.tolist())) < 2:
        raise UsageError("a proxy is measured on tasks it has not seen: give ideas of two or more.")


def _rows(named: Sequence[dict[str, float]], columns: Sequence[str]) -> Floats:
    try:
        rows = [[row[name] for name in columns] for row in named]
    except KeyError as error:
        raise UsageError(
            f"the proxy goes by {error}, which is no longer known; fit it anew."
        ) from None
    return np.array(rows, float).reshape(len(named), len(columns))


def _folds(tasks: NDArray[np.str_], seed: int) -> NDArray[np.int64]:
    """Of each example; the examples of a task are in the same one, and folds of like size."""
    from sklearn.model_selection import GroupKFold

    splits = GroupKFold(min(_FOLDS, len(set(tasks.tolist()))), shuffle=True, random_state=seed)
    folds = np.zeros(len(tasks), np.int64)
    for number, (_, out) in enumerate(splits.split(tasks, groups=tasks)):
        folds[out] = number
    return folds


def _calibrated_out_of_fold(raw: Floats, improved: Flags, folds: NDArray[np.int64]) -> Floats:
    """Each fold's chances by a calibration that has not seen it."""
    predicted = np.zeros(len(raw))
    for fold in sorted(set(folds.tolist())):
        out = folds == fold
        predicted[out] = np.interp(raw[out], *_calibration(raw[~out], improved[~out]))
    return predicted


def _calibration(raw: Floats, improved: Flags) -> tuple[Floats, Floats]:
    if len(raw) >= _ISOTONIC_FROM:
        from sklearn.isotonic import IsotonicRegression

        curve = IsotonicRegression(y_min=0.0, y_max=1.0).fit(raw, improved)
        return curve.X_thresholds_, curve.y_thresholds_
    from sklearn.linear_model import LogisticRegression

    line = LogisticRegression().fit(raw[:, None], improved)
    knots = np.linspace(raw.min(), raw.max(), _KNOTS)
    slope = max(float(line.coef_[0, 0]), 0.0)
    chances: Floats = 1 / (1 + np.exp(-(slope * knots + float(line.intercept_[0]))))
    return knots, chances
