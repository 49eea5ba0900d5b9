"""The hidden answers: read once, checked, and kept as arrays that metrics take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mle_ideator.benchmarks.grading.cells import Classes, in_order, numbers
from mle_ideator.benchmarks.grading.csv_text import read_columns
from mle_ideator.benchmarks.grading.files import Refused, read_regular_file
from mle_ideator.benchmarks.grading.formulas import Array
from mle_ideator.benchmarks.grading.ids import KnownIds
from mle_ideator.benchmarks.grading.metrics import Beside, MetricSpec
from mle_ideator.errors import GradingError

PART = "part"
Part = Literal["public", "private"]
PARTS: tuple[Part, ...] = ("public", "private")
_MAX_BYTES = 4 * 2**30


@dataclass(frozen=True)
class Answers:
    """The truth by part. Rows of the third part, `ignore`, must be predicted but have no truth."""

    ids: KnownIds
    """All that must be predicted."""
    rows: dict[Part, Array]
    """Positions of the part's rows among `ids`."""
    truth: dict[Part, Array]
    """In the order of `rows`: numbers or class codes, (n,) or (n, targets)."""
    classes: Classes | None
    beside: dict[Part, Array | None]
    """In the order of `rows`: what `MetricSpec.beside` asks for, if it does."""


def load_answers(
    path: Path,
    spec: MetricSpec,
    id_column: str,
    targets: tuple[str, ...],
    classes: tuple[str, ...],
    beside: Mapping[Beside, str],
) -> Answers:
    """Read `answers.csv`, which has the columns `beside` too.

    Raises `GradingError`, whose text holds none of the answers.
    """
    columns = _columns(path, (id_column, *targets, *beside.values(), PART))
    ids = KnownIds(columns[id_column])
    if not ids.unique:
        raise GradingError(f"the answers in {path} have an id more than once")
    rows = _rows(columns[PART], path)
    scored = np.concatenate(list(rows.values()))
    if not len(scored):
        raise GradingError(f"the answers in {path} have no row to score")
    cells = [columns[target].take(scored) for target in targets]
    known = None if spec.needs == "numbers" else _classes(cells, spec, classes)
    truth = _truth(cells, known, spec, path)
    cut = len(rows["public"])
    by_part: dict[Part, Array] = {"public": truth[:cut], "private": truth[cut:]}
    more = _beside(columns, scored, beside, spec, path)
    parted: dict[Part, Array | None] = {
        "public": more if more is None else more[:cut],
        "private": more if more is None else more[cut:],
    }
    return Answers(ids, rows, by_part, known, parted)


def _rows(part: Any, path: Path) -> dict[Part, Array]:
    """Positions by part."""
    encoded = part.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    if {*names} - {*PARTS, "ignore"}:
        raise GradingError(f"the answers in {path} have a part that is none of {PARTS} or ignore")
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    code = {name: names.index(name) if name in names else -1 for name in PARTS}
    return {name: np.flatnonzero(codes == code[name]) for name in PARTS}


def _columns(path: Path, wanted: tuple[str, ...]) -> dict[str, Any]:
    try:
        data = read_regular_file(path, _MAX_BYTES)
        columns, _ = read_columns(data, wanted, len(data), lambda _: False)
    except Refused as refused:
        reason = ", ".join(problem.code for problem in refused.problems)
        raise GradingError(
            f"the answers in {path} can not be read ({reason}); wanted are a plain CSV file and "
            f"the columns {', '.join(wanted)}"
        ) from None
    return columns


def _beside(
    columns: Mapping[str, Any],
    scored: Array,
    names: Mapping[Beside, str],
    spec: MetricSpec,
    path: Path,
) -> Array | None:
    """Numbers of the groups from 0, or 1 where the event was seen and 0 where it was not."""
    if spec.beside is None:
        return None
    cells = columns[names[spec.beside]].take(scored)
    if spec.beside == "group":
        codes = cells.dictionary_encode().indices
        return np.asarray(codes.to_numpy(zero_copy_only=False), np.int64)
    events, _ = Classes(("0", "1")).codes(cells)
    if (events < 0).any():
        raise GradingError(f"some events in {path} are neither 1 (seen) nor 0 (not seen)")
    return events


def _classes(cells: list[Any], spec: MetricSpec, declared: tuple[str, ...]) -> Classes:
    if len(cells) > 1:
        return Classes(("0", "1"))
    if spec.needs == "ordinal":
        return Classes(in_order(declared))
    if declared:
        return Classes(declared)
    return Classes(in_order(cells[0].unique().to_pylist()), closed=False)


def _truth(cells: list[Any], classes: Classes | None, spec: MetricSpec, path: Path) -> Array:
    if classes is None:
        columns = [numbers(column)[0] for column in cells]
    else:
        columns = [classes.codes(column)[0] for column in cells]
    truth = np.column_stack(columns)
    wrong = ~np.isfinite(truth) | spec.truth.outside(truth) if classes is None else truth < 0
    if wrong.any():
        raise GradingError(
            f"some answers in {path} are not what {spec.name} needs ({spec.needs}; {spec.truth})"
            if classes is None
            else f"some answers in {path} are none of the declared classes"
        )
    return truth[:, 0] if len(cells) == 1 else truth
