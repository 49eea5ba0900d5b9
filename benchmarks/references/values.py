"""What reference solutions are given, and what they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from mle_ideator.benchmarks.declared.spec import Spec

if TYPE_CHECKING:
    import pandas as pd

Rung: TypeAlias = Literal["weak", "boosting", "features", "full"]
RUNGS: tuple[Rung, ...] = ("weak", "boosting", "features", "full")


@dataclass(frozen=True, eq=False)
class Given:
    """What agents see of a task: nothing else, so that references play by the same rules."""

    spec: Spec
    train: pd.DataFrame
    """With the targets (text where they are classes) and the event."""
    test: pd.DataFrame
    sample: pd.DataFrame
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    """Side tables by file name without `.csv`."""

    @property
    def y(self) -> pd.Series[Any]:
        """The first target."""
        return self.train[self.spec.targets[0]]

    @property
    def hidden(self) -> tuple[str, ...]:
        """Columns that only the training rows have."""
        return (*self.spec.targets, *([self.spec.event] if self.spec.event else []))

    @property
    def features(self) -> list[str]:
        """The other columns, without the id."""
        return [name for name in self.test.columns if name != self.spec.id_column]


@dataclass(frozen=True)
class Reference:
    """One reference solution, the same each time it runs."""

    name: str
    """Unique in the task; stays as it is, as the leaderboard names it."""
    rung: Rung
    predict: Callable[[Given], Any]
    """A frame with the id and the prediction columns; or an array in the order of test.csv, with a
    column for each prediction column; or a mapping from prediction column to such an array."""
