"""Which row of a submission belongs to which wanted id. Ids are text and compared exactly."""

from __future__ import annotations

from typing import Any

import numpy as np

from mle_ideator.benchmarks.grading.formulas import Array
from mle_ideator.benchmarks.grading.wording import count, some
from mle_ideator.types import Problem


def align(
    submitted: Any, wanted: Any, problems: list[Problem], remarks: list[Problem]
) -> Array | None:
    """For each wanted id its row in the submission; `None` if they are in order already.

    Both are pyarrow arrays of text, `wanted` without repeats. Adds problems for ids that are
    missing, extra or double, in which case the result means nothing.
    """
    if submitted.equals(wanted):
        return None
    positions = _positions(submitted, wanted)
    known = positions >= 0
    times = np.bincount(positions[known], minlength=len(wanted))
    if len(submitted) != len(wanted) or not known.all() or (times != 1).any():
        problems += _problems(wanted, times, submitted.filter(~known).unique())
        return None
    remarks.append(Problem("row_order", "the rows are in another order; they were taken by id."))
    order = np.empty(len(wanted), np.int64)
    order[positions] = np.arange(len(wanted))
    return order


def _positions(submitted: Any, wanted: Any) -> Array:
    """For each submitted id its place among the wanted ones, or -1."""
    import pyarrow.compute as pc

    numbers = _integers(submitted), _integers(wanted)
    if all(ids is not None for ids in numbers):  # the same answer, twice as fast
        submitted, wanted = numbers
    found = pc.fill_null(pc.index_in(submitted, value_set=wanted), -1)
    return np.asarray(found.to_numpy(zero_copy_only=False))


def _integers(ids: Any) -> Any:
    """The ids as integers if that loses nothing: `007` and `1e5` must stay text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        integers = pc.cast(ids, pa.int64())
    except pa.ArrowInvalid:
        return None
    return integers if pc.cast(integers, ids.type).equals(ids) else None


def _problems(wanted: Any, times: Array, extra: Any) -> list[Problem]:
    missing, double = wanted.filter(times == 0), wanted.filter(times > 1)
    problems = []
    if len(double):
        message = f"{count(len(double), 'id')} more than once: {_some(double)}."
        advice = "Write exactly one row for each id."
        problems.append(Problem("duplicate_ids", f"{message} {advice}"))
    if len(missing):
        message = f"{count(len(missing), 'id')} of {len(wanted):,} missing: {_some(missing)}."
        problems.append(Problem("missing_ids", f"{message} {_advice(missing, extra)}"))
    if len(extra):
        message = f"{count(len(extra), 'id')} that test.csv does not have: {_some(extra)}."
        problems.append(Problem("extra_ids", f"{message} {_advice(missing, extra)}"))
    return problems


def _some(ids: Any) -> str:
    return some(ids.slice(0, 10).to_pylist(), len(ids))


def _advice(missing: Any, extra: Any) -> str:
    """What to do; if ids look as if a reader had turned them into numbers, that."""
    lost = {_as_number(name) for name in missing.slice(0, 1000).to_pylist()} - {None}
    if lost & {_as_number(name) for name in extra.slice(0, 1000).to_pylist()}:
        return (
            "Ids are text and must stay as they are: "
            "read test.csv with dtype=str, keep_default_na=False for the id."
        )
    return "Write exactly one row for each id of test.csv."


def _as_number(name: str) -> float | None:
    try:
        return float(name)
    except ValueError:
        return None
