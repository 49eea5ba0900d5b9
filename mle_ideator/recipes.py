"""The written forms of a recipe and a data profile, as they stand in solutions and observations.

The offline agents talk through the same text that a language model would see. A recipe is one
comment line in `solution.py`, a profile is one line that the first cell prints; both are read back
from there, so no agent needs to remember anything.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from mle_ideator.types import Value

T = TypeVar("T")

_RECIPE = "# recipe: "
_PROFILE = "profile: "


class Recipe(Value, frozen=True, kw_only=True, omit_defaults=True):
    """What a generated solution is made of: names of `operations.OPERATIONS`, in order."""

    operations: tuple[str, ...]
    seed: int = 0
    folds: int | None = None
    """Folds of the cross-validation; by default as many as the data's size affords."""
    seeds: int = 3
    """How many seeds `bag_seeds` averages."""
    sample: int | None = None
    """Train on this many rows at most."""
    members: tuple[str, ...] = ()
    """Model operations that `blend` or `stack` combines; by default what usually goes together."""

    @property
    def model(self) -> str:
        """The operation that chooses the model; there is exactly one."""
        return next(name for name in self.operations if name.startswith("model_"))

    def line(self) -> str:
        return _RECIPE + msgspec.json.encode(self).decode()


class Column(Value, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of one column of train.csv."""

    name: str
    kind: str
    """`number`, `category`, `text`, `date` or `constant`."""
    levels: int
    """Distinct values."""
    missing: float = 0.0
    """Share of missing values."""
    skew: float | None = None
    """Skewness of a numeric column."""
    low: float | None = None
    """Least value of a numeric column."""
    high: float | None = None
    """Greatest value of a numeric column."""


class Profile(Value, frozen=True, kw_only=True):
    """What the first look at the data found."""

    rows: int
    test_rows: int
    columns: tuple[Column, ...]
    """All columns of train.csv but the id, the targets and an image's pixels; see `unlisted`."""
    targets: tuple[Column, ...]
    image: tuple[int, int] | None = None
    """Height and width, where the numeric columns are the pixels of an image."""
    time: str | None = None
    """Name of the date column, where no date of the test rows occurs in the training rows."""
    gaps: bool = False
    """Do the dates of the test rows lie between those of the training rows, not after them?"""
    group: str | None = None
    """Name of a column whose levels in test do not occur in train; `time` where it has gaps."""
    series: tuple[str, ...] = ()
    """Columns that tell apart the series of a forecasting task."""
    side_tables: tuple[str, ...] = ()
    """Other CSV files in `input/`."""
    unlisted: int = 0
    """How many columns of a wide table `columns` leaves out, numeric ones first."""
    horizon: int | None = None
    """How many time steps the test rows reach beyond the training rows, where `time` is set."""

    def line(self) -> str:
        return _PROFILE + msgspec.json.encode(self).decode()


def recipe_in(code: str | None) -> Recipe | None:
    """The recipe of a generated solution; `None` for any other code."""
    return _read(code, _RECIPE, Recipe)


def profile_in(text: str | None) -> Profile | None:
    """The profile that an observation shows, if it shows one."""
    return _read(text, _PROFILE, Profile)


def _read(text: str | None, mark: str, kind: type[T]) -> T | None:
    for line in (text or "").split("\n"):
        if line.startswith(mark):
            try:
                return msgspec.json.decode(line.removeprefix(mark), type=kind)
            except msgspec.MsgspecError:
                continue
    return None
