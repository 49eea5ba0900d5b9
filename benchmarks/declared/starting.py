"""`task new`: a task folder that works at once, from a person's table or from an example."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from mle_ideator.benchmarks.building import PART
from mle_ideator.benchmarks.declared.assembling import build, read_built
from mle_ideator.benchmarks.declared.spec import DECLARATION, read_spec
from mle_ideator.benchmarks.grading import metric_named
from mle_ideator.errors import TaskError, unknown

if TYPE_CHECKING:
    import pandas as pd

    from mle_ideator.benchmarks.own_data.target import Target

DATA = "data.csv"
LEAST_ROWS = 50
_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class _Table:
    """Rows with a target, each with other features, every cell as text."""

    frame: pd.DataFrame
    target: Target
    unused: str | None
    """Their column that only names rows."""
    origin: str
    licence: str
    remarks: list[str]

    @property
    def id_column(self) -> str:
        from mle_ideator.benchmarks.own_data.identity import free_name

        names = [name for name in self.frame.columns if name != self.unused]
        taken = {*names, *self.target.columns}
        return "id" if "id" not in taken else free_name(self.frame.columns)

    @property
    def test_rows(self) -> int:
        """A fifth."""
        return max(len(self.frame) // 5, 10)


def new_task(
    folder: Path, train: Path | None = None, target: str | None = None, metric: str | None = None
) -> None:
    """Write a task folder: of the table in `train` and its column `target`, or of an example.

    It can be loaded, checked and run at once. Without `metric` one that fits is taken. The folder
    must be new or empty. Raises `TaskError`; then nothing is left of it.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise TaskError(f"{folder} is there already; name a new folder.")
    if (train is None) != (target is None):
        raise TaskError("a table and its target go together: give both --train and --target.")
    _require_simple(metric)
    table = _example(metric) if train is None else _own(train, target or "", metric)
    existed = folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder, table)
        _pin(folder)
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if existed:
            folder.mkdir()
        if isinstance(error, OSError):
            raise TaskError(f"{folder} can not be written: {error.strerror}.") from error
        raise


def _require_simple(metric: str | None) -> None:
    """Some metrics need columns that have to be declared by hand."""
    if metric is None:
        return
    spec = metric_named(metric)
    if spec.targets == "many" or spec.beside is not None:
        what = "several targets" if spec.targets == "many" else f"a column {spec.beside}"
        raise TaskError(
            f"{spec.name} needs {what}: start with another metric, then change {DECLARATION} and "
            "build.py."
        )


def _own(train: Path, target: str, metric: str | None) -> _Table:
    """A person's table."""
    from mle_ideator.benchmarks.own_data.identity import identity_of
    from mle_ideator.benchmarks.own_data.reading import Table, blank, read_table
    from mle_ideator.benchmarks.own_data.target import understand

    table = read_table(train)
    frame, remarks = table.frame, [*table.remarks]
    if target not in frame:
        raise TaskError(f"{train}: {unknown('target column', target, frame.columns)}")
    if target == PART:
        raise TaskError(f"the target can not be called {PART!r}; rename it.")
    frame = frame[~blank(frame[target])]
    if lost := len(table.frame) - len(frame):
        remarks.append(f"{lost:,} rows without a target were left out")
    named = identity_of(None, Table(train, frame.drop(columns=target)), None).usable
    features = [name for name in frame.columns if name not in (target, named)]
    if not features:
        raise TaskError(f"there is no column beside the target {target!r} to predict it from.")
    once = frame.drop_duplicates(features)
    if lost := len(frame) - len(once):
        remarks.append(f"{lost:,} rows with the features of another row were left out")
    if len(once) < LEAST_ROWS:
        raise TaskError(f"{train} has {len(once):,} different rows; {LEAST_ROWS} are needed.")
    once = once.reset_index(drop=True)
    understood = understand(once[target], metric)
    return _Table(once, understood, named, train.name, "TODO", [*remarks, *understood.remarks])


def _example(metric: str | None) -> _Table:
    """Parcels, made up: small, but with something to find out."""
    import numpy as np
    import pandas as pd

    from mle_ideator.benchmarks.own_data.target import understand

    spec = metric_named(metric or "rmse")
    rng = np.random.default_rng(1)
    size = rng.integers(5, 90, size=(600, 3))
    kilos = (size.prod(axis=1) / 9_000 * rng.uniform(0.2, 2.0, 600)).round(2) + 0.05
    zone = rng.choice(["near", "far", "abroad"], 600, p=[0.5, 0.3, 0.2])
    rate = pd.Series(zone).map({"near": 0.9, "far": 1.4, "abroad": 3.1}).to_numpy()
    price = (3 + rate * np.maximum(kilos, size.prod(axis=1) / 5_000) + rng.normal(0, 0.4, 600)) + 1
    price = price.clip(1.5).round(2)
    frame = pd.DataFrame(
        {"length": size[:, 0], "width": size[:, 1], "height": size[:, 2], "kilos": kilos}
    ).assign(zone=zone)
    if spec.needs == "numbers":
        frame["price"] = price
    else:
        frame["dear"] = np.searchsorted(np.quantile(price, [0.6]), price)
    origin = "synthetic: an example, prices of parcels"
    text = frame.astype(str)
    target = understand(text.iloc[:, -1], spec.name)
    return _Table(text, target, None, origin, "CC0-1.0: made up", [])


def _write(folder: Path, table: _Table) -> None:
    from mle_ideator.benchmarks.own_data.describing import MOST_COLUMNS, describe, task_type

    target, spec = table.target, table.target.spec
    features = table.frame.drop(columns=[target.name, *([table.unused] if table.unused else [])])
    used = features.assign(**{target.name: table.frame[target.name]})
    described = describe(used.assign(**{table.id_column: ""}), target, table.id_column, [])
    if len(features.columns) > MOST_COLUMNS:
        more = ", ".join(f"`{name}`" for name in features.columns[MOST_COLUMNS:])
        described += f"\nThe further columns are {more}.\n"
    (folder / "description.md").write_text(described, encoding="utf-8")
    table.frame.to_csv(folder / DATA, index=False, lineterminator="\n")
    made = {
        "title": _quoted(f"Predict {target.name}"),
        "type": task_type(features, target),
        "metric": spec.name,
        "higher": str(spec.higher_is_better).lower(),
        "prediction": spec.prediction,
        "target": _quoted(target.name),
        "classes": f"classes: {_quoted(list(target.classes))}\n" if target.classes else "",
        "train_rows": len(table.frame) - table.test_rows,
        "test_rows": table.test_rows,
        "origin": _quoted(table.origin),
        "licence": _quoted(table.licence),
        "id_column": _quoted(table.id_column),
        "name": repr(target.name),
        "as_number": "" if target.classes else _AS_NUMBER,
        "without_names": f"    rows = rows.drop(columns={table.unused!r})  # it only names rows\n"
        if table.unused
        else "",
        "by": ", by=TARGET" if target.classes else "",
    }
    for name in (DECLARATION, "build.py", "references.py"):
        template = Template((_TEMPLATES / f"{name}.tmpl").read_text(encoding="utf-8"))
        (folder / name).write_text(template.substitute(made), encoding="utf-8")


_AS_NUMBER = "    rows[TARGET] = rows[TARGET].astype(float)\n"


def _quoted(value: object) -> str:
    """As YAML reads it, of which JSON is a part."""
    return json.dumps(value, ensure_ascii=False)


def _pin(folder: Path) -> None:
    """Build it once, so that task.yaml tells the hash of its files."""
    with tempfile.TemporaryDirectory() as place:
        made = Path(place) / "built"
        made.mkdir()
        build(read_spec(folder), folder, made)
        pinned = read_built(made).sha256
    file = folder / DECLARATION
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("sha256: ''", f"sha256: {pinned}"), encoding="utf-8")
