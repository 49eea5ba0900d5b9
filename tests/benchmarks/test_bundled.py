"""The bundled tasks: declared as built, the same everywhere, telling nothing of their answers."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pandas as pd
import pytest

from mle_ideator.benchmarks import building
from mle_ideator.benchmarks.bundled import BundledTasks, bundled_folders
from mle_ideator.benchmarks.cache import VARIABLE
from mle_ideator.benchmarks.declared.assembling import load
from mle_ideator.benchmarks.declared.spec import read_spec
from mle_ideator.benchmarks.grading import METRICS
from mle_ideator.errors import TaskError
from mle_ideator.protocols import Grader, TaskSource
from mle_ideator.types import Task

FOLDERS = bundled_folders()
IDS = list(FOLDERS)
each = pytest.mark.parametrize("task_id", IDS)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def built(cache: Path, monkeypatch: pytest.MonkeyPatch, task_id: str) -> tuple[Task, Grader]:
    monkeypatch.setenv(VARIABLE, str(cache))
    return BundledTasks().load(task_id)


def table(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def files_of(task: Task) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    public = Path(task.inputs)
    names = (building.TRAIN, building.TEST, building.SAMPLE)
    train, test, sample = (table(public / name) for name in names)
    return train, test, sample, table(public.parent / building.PRIVATE / building.ANSWERS)


def test_kinds_of_tasks():
    cards = BundledTasks().cards()
    assert isinstance(BundledTasks(), TaskSource)
    assert len(cards) == 8
    assert [card.split for card in cards].count("train") == 4
    kinds = {card.type for card in cards}
    assert {"tabular-regression", "tabular-classification", "time-series"} <= kinds
    assert {"image-classification", "text-classification"} <= kinds


def test_cards_are_read_without_pandas():
    code = (
        "import sys; from mle_ideator.benchmarks.bundled import BundledTasks\n"
        "assert len(BundledTasks().cards()) == 8\n"
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
    spec, metric = read_spec(FOLDERS[task_id]), METRICS[read_spec(FOLDERS[task_id]).metric]
    assert (metric.higher_is_better, metric.prediction) == (spec.higher_is_better, spec.prediction)
    assert spec.licence
    assert spec.origin
    assert (FOLDERS[task_id] / "description.md").read_text().startswith(f"# {spec.title}\n")


@each
def test_built_as_declared(built, task_id):
    task, _ = built
    train, test, sample, answers = files_of(task)
    assert (len(train), len(test)) == task.rows == read_spec(FOLDERS[task_id]).rows
    assert list(sample.columns) == [task.id_column, *task.targets]
    assert list(answers.columns) == [task.id_column, *read_spec(FOLDERS[task_id]).targets, "part"]
    for ids in (sample, answers):
        assert ids[task.id_column].tolist() == test[task.id_column].tolist()
    for name in train.columns:
        assert f"`{name}`" in task.description or re.fullmatch(r"p\d+", name), name


@each
def test_files_are_those_that_were_measured(built, task_id, caplog):
    caplog.clear()
    load(FOLDERS[task_id])
    assert caplog.messages == []


@each
def test_second_build_elsewhere_is_equal_to_the_byte(built, task_id, tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    again, _ = BundledTasks().load(task_id)
    first, second = Path(built[0].inputs).parent, Path(again.inputs).parent
    assert first != second
    assert first.name == second.name
    names = sorted(path.relative_to(first) for path in first.rglob("*.*"))
    assert names == sorted(path.relative_to(second) for path in second.rglob("*.*"))
    assert [(first / n).read_bytes() for n in names] == [(second / n).read_bytes() for n in names]


@each
def test_public_files_hold_no_answers(built, task_id):
    task, _ = built
    _, test, sample, _ = files_of(task)
    targets = read_spec(FOLDERS[task_id]).targets
    assert not set(targets) & set(test.columns)
    assert (sample.drop(columns=task.id_column).nunique() == 1).all()
    declared = {"train.csv", "test.csv", "sample_submission.csv"}
    for path in Path(task.inputs).iterdir():
        if path.name not in declared:
            assert f"`{path.name}`" in task.description
            assert not set(targets) & set(table(path).columns)
    private = Path(task.inputs).parent / building.PRIVATE
    assert private.stat().st_mode & 0o777 == 0o700
    assert str(private) in task.masked
    assert all(Path(path).exists() for path in task.masked)


@each
def test_no_test_row_is_a_training_row(built, task_id):
    task, _ = built
    train, test, _, _ = files_of(task)
    shared = [name for name in test.columns if name != task.id_column]
    rows = [set(pd.util.hash_pandas_object(f[shared], index=False)) for f in (train, test)]
    assert not rows[0] & rows[1]
    assert not set(train[task.id_column]) & set(test[task.id_column])


@each
def test_ids_and_order_say_nothing(built, task_id):
    task, _ = built
    train, _, _, answers = files_of(task)
    for frame in (train, answers):
        target = frame[read_spec(FOLDERS[task_id]).targets[0]]
        values = pd.to_numeric(target, errors="coerce")
        ranks = (target.astype("category").cat.codes if values.isna().any() else values).rank()
        place = frame[task.id_column].astype(int)
        assert abs(place.corr(ranks)) < 4 / len(frame) ** 0.5
        # neighbours are no more alike than any two rows
        assert abs(ranks.corr(ranks.shift())) < 4 / len(frame) ** 0.5


@each
def test_parts_are_halves(built, task_id):
    _, _, _, answers = files_of(built[0])
    public = (answers["part"] == "public").mean()
    assert set(answers["part"]) == {"public", "private"}
    assert 0.48 < public < 0.52


@each
def test_sample_submission_is_the_baseline(built, task_id):
    task, grader = built
    grade = grader.grade(Path(task.inputs) / building.SAMPLE)
    assert grade.problems == grade.remarks == ()
    assert (grade.public, grade.private) == (task.baseline.public, task.baseline.private)
    assert task.baseline.private is not None


@each
def test_answers_beat_the_baseline(built, task_id, tmp_path):
    task, grader = built
    _, _, _, answers = files_of(task)
    truth = answers[read_spec(FOLDERS[task_id]).targets[0]]
    perfect = answers[[task.id_column]].copy()
    if len(task.targets) > 1:
        for name in task.targets:
            perfect[name] = (truth == name).astype(int)
    else:
        perfect[task.targets[0]] = truth.replace("0", "0.01" if task.type.endswith("ion") else "0")
    if task.prediction == "label":
        perfect[task.targets[0]] = truth
    perfect.to_csv(tmp_path / "submission.csv", index=False)
    grade = grader.grade(tmp_path / "submission.csv")
    assert grade.valid, grade.problems
    assert grade.private.better_than(task.baseline.private)
    assert grade.public.better_than(task.baseline.public)


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
