"""A submission that can be scored, or exactly what is wrong with it.

Agent code wrote the file, so nothing is trusted and nothing raises: each fault is a `Problem` with
a stable code, listed in `docs/grading.md`. Messages name ids, columns and the submission's own
cells; the answers are not known here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mle_ideator.benchmarks.grading.cells import BLANK, UNKNOWN, Classes, numbers
from mle_ideator.benchmarks.grading.csv_text import read_columns
from mle_ideator.benchmarks.grading.files import Refused, read_regular_file
from mle_ideator.benchmarks.grading.formulas import Array
from mle_ideator.benchmarks.grading.ids import KnownIds
from mle_ideator.benchmarks.grading.metrics import ANY, UNIT, Interval
from mle_ideator.benchmarks.grading.wording import EXAMPLES, count, quoted, some
from mle_ideator.types import Problem

SUM_TOLERANCE = 1e-3
"""The probabilities of a row may miss 1 by this; what is missing is made up by rescaling."""
ROUNDING = 1e-6
"""Differences up to this are rounding: neither told nor held against anybody."""

CLASSES_NAMED = 20
"""So many classes are named to those who predicted none of them."""

_MIB = 2**20


@dataclass(frozen=True)
class Wanted:
    """What a valid submission of a task has."""

    id_column: str
    columns: tuple[str, ...]
    ids: KnownIds
    """Each once, in the order in which predictions come back."""
    prediction: str
    bounds: Interval = ANY
    classes: Classes | None = None
    """What may be predicted as a label."""
    sums_to_one: bool = False
    """Is a row one distribution over the classes?"""

    @cached_property
    def header(self) -> tuple[str, ...]:
        return (self.id_column, *self.columns)

    @cached_property
    def max_bytes(self) -> int:
        """64 MiB, and for large tasks ample room for each cell."""
        return 64 * _MIB + 64 * len(self.ids) * len(self.header) + 4 * int(self.ids.text.nbytes)

    @property
    def max_rows(self) -> int:
        return 10 * len(self.ids) + 10_000

    def is_data(self, cell: str) -> bool:
        """Is it an id or a declared class?"""
        classes = self.classes
        declared = classes.names if classes and classes.closed else ()
        return cell in self._known_ids or cell in declared

    @cached_property
    def _known_ids(self) -> frozenset[str]:
        return frozenset(self.ids.text.to_pylist())


@dataclass
class Checked:
    """What came of a submission; `predictions` only if there is no problem."""

    predictions: Array | None = None
    """In the order of `Wanted.ids`; (n,) for one column, else (n, columns)."""
    problems: list[Problem] = field(default_factory=list)
    remarks: list[Problem] = field(default_factory=list)

    def problem(self, code: str, message: str) -> None:
        self.problems.append(Problem(code, message))

    def remark(self, code: str, message: str) -> None:
        self.remarks.append(Problem(code, message))


def check(path: Path, wanted: Wanted) -> Checked:
    """Read and check `path`. Never raises for what the file is or holds."""
    checked = Checked()
    try:
        data = read_regular_file(path, wanted.max_bytes)
        columns, remarks = read_columns(data, wanted.header, wanted.max_rows, wanted.is_data)
    except Refused as refused:
        checked.problems.extend(refused.problems)
        return checked
    checked.remarks.extend(remarks)
    ids = columns[wanted.id_column]
    order = wanted.ids.align(ids, checked.problems, checked.remarks)
    cells = _Cells(wanted, ids, columns, checked)
    predictions = cells.labels() if wanted.prediction == "label" else cells.numbers()
    if not checked.problems:
        aligned = predictions if order is None else predictions[order]
        checked.predictions = aligned[:, 0] if len(wanted.columns) == 1 else aligned
    return checked


@dataclass
class _Cells:
    """The prediction cells of one submission, in its own order: (rows, columns)."""

    wanted: Wanted
    ids: Any
    columns: dict[str, Any]
    checked: Checked

    def labels(self) -> Array:
        classes = self.wanted.classes or Classes((), closed=False)
        read = [classes.codes(self.columns[name]) for name in self.wanted.columns]
        codes = np.column_stack([codes for codes, _ in read])
        self._report(codes == BLANK, "missing_prediction", "empty", "Fill them in.")
        known = some(classes.names, len(classes.names), CLASSES_NAMED)
        advice = f"The classes are {known}."
        self._report(codes == UNKNOWN, "unknown_label", "none of the classes", advice)
        if classes.closed and any(otherwise for _, otherwise in read):
            message = "some labels are spelt otherwise than in train.csv; they were recognised."
            self.checked.remark("label_spelling", message)
        return codes

    def numbers(self) -> Array:
        read = [numbers(self.columns[name]) for name in self.wanted.columns]
        values = np.column_stack([values for values, _ in read])
        if not np.isfinite(values).all():
            self._report_not_finite(values, np.column_stack([bad for _, bad in read]))
        bounds = self.wanted.bounds
        if bounds == UNIT:
            values = self._within_rounding(values)
        outside = bounds.outside(values) & ~np.isinf(values)
        advice = f"Clip or transform them: they must be {bounds}."
        self._report(outside, "out_of_range", "out of range", advice)
        if self.wanted.prediction == "probability" and not self.checked.problems:
            self._remark_on_probabilities(values)
            if self.wanted.sums_to_one:
                values = self._summing_to_one(values)
        return values

    def _report_not_finite(self, values: Array, no_number: Array) -> None:
        what = "no number"
        advice = "Write numbers with a decimal point, and no quotes, units or class names."
        self._report(no_number, "not_a_number", what, advice)
        blank = np.isnan(values) & ~no_number
        self._report(blank, "missing_prediction", "empty or NaN", "Fill them in.")
        self._report(np.isinf(values), "infinite", "infinite", "Write finite numbers.")

    def _within_rounding(self, values: Array) -> Array:
        slightly = (values > 1) & (values <= 1 + ROUNDING) | (values < 0) & (values >= -ROUNDING)
        return np.where(slightly, np.clip(values, 0, 1), values) if slightly.any() else values

    def _remark_on_probabilities(self, values: Array) -> None:
        if len(values) > 1 and ((values == 0) | (values == 1)).all():
            message = "all predictions are 0 or 1; this metric wants probabilities."
            self.checked.remark("hard_labels", f"{message} Use predict_proba, not predict.")
        if self.wanted.bounds == ANY and UNIT.outside(values).any():
            message = "some predictions lie outside [0, 1]; this metric uses only their order."
            self.checked.remark("not_probabilities", message)

    def _summing_to_one(self, values: Array) -> Array:
        sums = values.sum(axis=1)
        off = np.abs(sums - 1)
        wrong = off > SUM_TOLERANCE
        if wrong.any():
            at = np.flatnonzero(wrong)
            ids = self.ids.take(at[:EXAMPLES]).to_pylist()
            each = ", ".join(
                f"{sums[i]:.6g} for id {quoted(name)}" for i, name in zip(at, ids, strict=False)
            )
            message = f"the probabilities of {count(len(at), 'row')} do not sum to 1: {each}."
            advice = f"Divide each row by its sum (tolerance {SUM_TOLERANCE:g})."
            self.checked.problem("probability_sum", f"{message} {advice}")
            return values
        if (off > ROUNDING).any():
            message = f"{count(int((off > ROUNDING).sum()), 'row')} missed a sum of 1 by up to"
            told = f"{message} {off.max():.2g}; they were divided by their sum."
            self.checked.remark("renormalised", told)
        return np.asarray(values / sums[:, None])

    def _report(self, mask: Array, code: str, what: str, advice: str) -> None:
        """A problem for the marked cells, with the first of them."""
        total = int(mask.sum())
        if not total:
            return
        examples = ", ".join(self._cell(row, col) for row, col in np.argwhere(mask)[:EXAMPLES])
        more = ", …" if total > EXAMPLES else ""
        are = "is" if total == 1 else "are"
        message = f"{count(total, 'prediction')} {are} {what}: {examples}{more}. {advice}"
        self.checked.problem(code, message)

    def _cell(self, row: int, col: int) -> str:
        name = self.wanted.columns[col]
        column = f" in column {quoted(name)}" if len(self.wanted.columns) > 1 else ""
        text = self.columns[name][int(row)].as_py()
        return f"{quoted(text)} for id {quoted(self.ids[int(row)].as_py())}{column}"
