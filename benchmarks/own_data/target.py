"""What a target column is, and which metric fits it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mle_ideator.benchmarks.grading import MetricSpec, metric_named
from mle_ideator.benchmarks.grading.cells import in_order, numbers
from mle_ideator.benchmarks.grading.wording import count, quoted, some
from mle_ideator.errors import TaskError, UsageError

if TYPE_CHECKING:
    import pandas as pd

FEW_NUMBERS = 20
"""A target of at most so many different whole numbers is taken for classes."""
MOST_CLASSES = 100
LEAST_OF_A_CLASS = 4
"""Rows: two to train on, one in each graded part, and one to spare."""


@dataclass(frozen=True)
class Target:
    """A target column that fits its metric."""

    name: str
    spec: MetricSpec
    classes: tuple[str, ...] = ()
    """Empty for numbers; else in order, the positive one of two last."""
    remarks: list[str] = field(default_factory=list)

    @property
    def columns(self) -> tuple[str, ...]:
        by_class = self.spec.prediction == "probability" and len(self.classes) > 2
        return self.classes if by_class else (self.name,)


def understand(cells: pd.Series[str], metric: str | None) -> Target:
    """The target in `cells`, none of which is blank, under `metric` or one that fits."""
    name, distinct = str(cells.name), cells.unique().tolist()
    if len(distinct) == 1:
        raise TaskError(
            f"the target {name!r} is {quoted(distinct[0])} in every row: nothing to predict."
        )
    values = numbers_in(cells)
    remarks = []
    if metric is None:
        spec = metric_named(_fitting(name, distinct, values, len(cells)))
        remarks.append(f"no metric was named; {spec.name} was taken.")
    else:
        try:
            spec = metric_named(metric)
        except UsageError as error:
            raise TaskError(str(error)) from error
    if spec.beside:
        raise TaskError(f"{spec.name} needs a column of {spec.beside}s; choose another metric.")
    if spec.targets == "many":
        raise TaskError(f"{spec.name} needs several target columns; choose another metric.")
    if spec.needs == "numbers":
        _require_numbers(cells, values, spec)
        return Target(name, spec, (), remarks)
    _require_classes(cells, distinct, values, spec, remarks)
    return Target(name, spec, tuple(in_order(distinct)), remarks)


def numbers_in(cells: pd.Series[str]) -> pd.Series[float] | None:
    """The cells as finite numbers, or `None` if any is none."""
    import numpy as np

    numbers = _as_numbers(cells)
    return numbers if np.isfinite(numbers).all() else None


def _as_numbers(cells: pd.Series[str]) -> pd.Series[float]:
    """As the grader reads them; NaN where a cell is no number."""
    import pandas as pd
    import pyarrow as pa

    values, _ = numbers(pa.array(cells.tolist(), pa.string()))
    return pd.Series(values, index=cells.index)


def _fitting(name: str, distinct: list[str], values: pd.Series[float] | None, rows: int) -> str:
    if len(distinct) == 2:
        return "auc"
    if values is not None and (len(distinct) > FEW_NUMBERS or (values % 1 != 0).any()):
        return "rmse"
    if len(distinct) > rows / 3:
        odd = [text for text in distinct if not _is_finite(text)]
        if 2 * len(odd) < len(distinct):
            raise TaskError(
                f"the target {name!r} has numbers, and {quoted(odd[0])} and the like in "
                f"{len(odd):,} different values: mend these, or leave the rows out."
            )
        raise TaskError(
            f"the target {name!r} has {len(distinct):,} different texts in {rows:,} rows: "
            "neither numbers nor classes."
        )
    return "accuracy"


def _is_finite(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _require_numbers(
    cells: pd.Series[str], values: pd.Series[float] | None, spec: MetricSpec
) -> None:
    import numpy as np

    if values is None:
        odd = cells[~np.isfinite(_as_numbers(cells))]
        comma = "," in odd.iloc[0]
        hint = "; write decimals with a point, thousands without a mark." if comma else "."
        raise TaskError(
            f"{spec.name} needs numbers, but the target {cells.name!r} has "
            f"{quoted(odd.iloc[0])} and "
            f"the like in {len(odd):,} of {len(cells):,} rows{hint}"
        )
    outside = values[spec.truth.outside(values.to_numpy())]
    if len(outside):
        raise TaskError(
            f"{spec.name} needs values {spec.truth}, but the target {cells.name!r} has "
            f"{outside.iloc[0]:g} and the like in {len(outside):,} of {len(cells):,} rows."
        )


def _require_classes(
    cells: pd.Series[str],
    distinct: list[str],
    values: pd.Series[float] | None,
    spec: MetricSpec,
    remarks: list[str],
) -> None:
    what = f"the target {cells.name!r} has {len(distinct):,} different values"
    two = spec.needs == "two classes"
    if two and len(distinct) != 2:
        raise TaskError(f"{spec.name} needs two classes, but {what}.")
    measured = values is not None and len(distinct) > 2 and (values % 1 != 0).any()
    if len(distinct) > min(MOST_CLASSES, len(cells) / 3) or measured:
        few = "two classes, or few" if spec.name == "auc" else "classes"
        raise TaskError(f"{spec.name} needs {few}, but {what} in {len(cells):,} rows.")
    if spec.needs == "ordinal" and values is None:
        raise TaskError(
            f"{spec.name} needs classes with an order; write them as numbers in {cells.name!r}."
        )
    counts = cells.value_counts()
    rare = counts[counts < LEAST_OF_A_CLASS]
    if len(rare) and (two or len(distinct) == 2 or spec.name in {"auc", "average_precision"}):
        raise TaskError(
            f"the class {quoted(rare.index[-1])} of {cells.name!r} has "
            f"{count(int(rare.iloc[-1]), 'row')}; "
            f"at least {LEAST_OF_A_CLASS} are needed to grade with {spec.name}."
        )
    if len(rare):
        remarks.append(
            f"classes with fewer than {LEAST_OF_A_CLASS} rows are hardly graded: "
            f"{some(rare.index, len(rare))}."
        )
