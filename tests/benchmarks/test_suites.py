"""Suites by name, folder and file; what is missing is said before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from mle_ideator.benchmarks import suites
from mle_ideator.benchmarks.bundled import BundledTasks, bundled_folders
from mle_ideator.benchmarks.declared.spec import Spec, read_spec
from mle_ideator.benchmarks.mlebench.competitions import VARIABLE
from mle_ideator.benchmarks.mlebench.splits import complexities
from mle_ideator.benchmarks.suites import suite_tasks
from mle_ideator.errors import TaskError

CONFIG = """\
id: {id}
name: {id}
dataset: {{answers: {id}/prepared/private/test.csv, sample_submission: {id}/s.csv}}
grader: {{name: accuracy, grade_fn: "grade:grade"}}
"""
TASK = """\
title: Twice
type: tabular-regression
split: test
metric: rmse
higher_is_better: false
prediction: value
targets: [y]
rows: [10, 10]
origin: made by the tests
licence: none needed
"""


def refused(name: str, data: Path | None = None) -> str:
    with pytest.raises(TaskError) as error:
        suite_tasks(name, data)
    assert "\n" not in str(error.value)
    return str(error.value)


# ----------------------------------------------------------------------------------- bundled


def of_split(split: str) -> list[str]:
    return [card.id for card in BundledTasks().cards() if card.split == split]


@pytest.fixture
def everything_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "_require_installed", lambda specs: None)


@pytest.mark.usefixtures("everything_installed")
def test_bundled_suites():
    all_of_them = suite_tasks("bundled")
    assert all_of_them.name == "bundled"
    assert all_of_them.tasks == tuple(card.id for card in BundledTasks().cards())
    assert list(suite_tasks("bundled:train").tasks) == of_split("train")
    assert list(suite_tasks("bundled:test").tasks) == of_split("test")


@pytest.mark.usefixtures("everything_installed")
def test_smoke(monkeypatch: pytest.MonkeyPatch):
    marked = {task for task, folder in bundled_folders().items() if read_spec(folder).smoke}
    if marked:
        assert set(suite_tasks("smoke").tasks) == marked
    monkeypatch.setattr(suites, "bundled_folders", dict)
    assert refused("smoke") == "the suite 'smoke' has no task"


def lacking(package: str) -> dict[str, object]:
    values = dict.fromkeys(("title", "type", "origin", "licence", "metric"), "x")
    source = {"package": package, "distribution": package.replace("_", "-"), "files": ["data"]}
    return {**values, "higher_is_better": True, "source": source}


def test_packages_that_are_missing_are_named_together():
    import msgspec

    common = {"split": "test", "prediction": "value", "targets": ["y"], "rows": [1, 1]}
    made = {
        f"task-{number}": msgspec.convert({**lacking(f"not_there_{number % 2}"), **common}, Spec)
        for number in range(7)
    }
    with pytest.raises(TaskError) as error:
        suites._require_installed(made)
    said = str(error.value)
    assert "task-0, task-1, task-2, task-3, task-4 and 2 more" in said
    assert "`pip install not-there-0 not-there-1`" in said


def test_unknown_names_get_the_nearest():
    assert "did you mean 'bundled:train'?" in refused("bundled:trian")
    assert "did you mean 'mlebench-lite'?" in refused("mlebench_lite")


# ---------------------------------------------------------------------------------- MLE-bench


def prepare(data: Path, *names: str, registry: Path | None = None) -> None:
    for name in names:
        for part in ("public", "private"):
            (data / name / "prepared" / part).mkdir(parents=True)
        (data / name / "prepared" / "private" / "test.csv").touch()
        (data / name / "prepared" / "public" / "sample_submission.csv").touch()
        entry = (registry or data) / name
        entry.mkdir(parents=True, exist_ok=True)
        (entry / "config.yaml").write_text(CONFIG.format(id=name))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(VARIABLE, raising=False)
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


def test_lite_and_the_full_set(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "registry"))
    known = complexities()
    prepare(data, *known.low, registry=tmp_path / "registry")
    lite = suite_tasks("mlebench-lite", data)
    assert len(lite.tasks) == 22
    assert lite.tasks[0] == f"mlebench:{data}/aerial-cactus-identification"
    strict = suite_tasks("mlebench-lite:strict", data)
    assert strict.name == "mlebench-lite:strict"
    assert strict.tasks[0] == f"mlebench:strict:{data}/aerial-cactus-identification"
    assert "53 of 75 competitions are not prepared in" in refused("mlebench", data)
    prepare(data, *known.medium, *known.high, registry=tmp_path / "registry")
    assert len(suite_tasks("mlebench", data).tasks) == 75


def test_the_papers_way_with_ones_own_lists(data: Path, tmp_path: Path):
    file = tmp_path / "paper.yaml"
    file.write_text("train: [a, b]\ntest: [c]\n")
    prepare(data, "a", "b", "c")
    assert suite_tasks(f"mlebench:{file}:train", data).tasks == (
        f"mlebench:{data}/a",
        f"mlebench:{data}/b",
    )
    assert suite_tasks(f"mlebench:{file}:test", data).tasks == (f"mlebench:{data}/c",)
    assert len(suite_tasks(f"mlebench:{file}", data).tasks) == 3
    strict = suite_tasks(f"mlebench:{file}:test:strict", data)
    assert strict.tasks == (f"mlebench:strict:{data}/c",)
    file.write_text("train: [a]\n")
    assert "has no task" in refused(f"mlebench:{file}:test", data)
    assert "no-such.yaml" in refused("mlebench:no-such.yaml", data)


def test_data_that_is_missing_is_said(data: Path, tmp_path: Path):
    assert "name their folder with --data" in refused("mlebench-lite")
    said = refused("mlebench-lite", data)
    assert said.startswith(f"22 of 22 competitions are not prepared in {data}: aerial-cactus")
    assert "and 17 more; prepare each with `mlebench prepare -c ID --data-dir" in said
    file = tmp_path / "paper.yaml"
    file.write_text("train: [a]\n")
    prepare(data, "a")
    (data / "a" / "leaderboard.csv").write_text("version https://git-lfs.github.com/spec/v1\n")
    assert "git lfs pull" in refused(f"mlebench:{file}", data)
    (data / "a" / "config.yaml").unlink()
    assert f"set {VARIABLE} to a clone" in refused(f"mlebench:{file}", data)


# -------------------------------------------------------------------------- folders and files


def test_a_folder_of_task_folders(tmp_path: Path):
    for name in ("two", "one"):
        (tmp_path / "tasks" / name).mkdir(parents=True)
        (tmp_path / "tasks" / name / "task.yaml").write_text(TASK)
    (tmp_path / "tasks" / "notes").mkdir()
    suite = suite_tasks(f"{tmp_path}/tasks")
    assert suite.tasks == (f"{tmp_path}/tasks/one", f"{tmp_path}/tasks/two")
    assert suite_tasks(f"{tmp_path}/tasks/one").tasks == (f"{tmp_path}/tasks/one",)
    assert "no folder in" in refused(f"{tmp_path}/tasks/notes")


def test_files_of_tasks(tmp_path: Path):
    (tmp_path / "twice").mkdir()
    (tmp_path / "twice" / "task.yaml").write_text(TASK)
    text = tmp_path / "mine.txt"
    text.write_text("# mine\ncdnow-clv\n\ntwice   # beside this file\nkaggle:titanic\ncdnow-clv\n")
    expected = ("cdnow-clv", f"{tmp_path}/twice", "kaggle:titanic")
    assert suite_tasks(str(text)).tasks == expected
    yaml = tmp_path / "mine.yaml"
    yaml.write_text("- cdnow-clv\n- twice\n- kaggle:titanic\n")
    assert suite_tasks(str(yaml)).tasks == expected
    yaml.write_text("- cdnow-clw\n")
    assert "did you mean 'cdnow-clv'?" in refused(str(yaml))
    yaml.write_text("train: [cdnow-clv]\n")
    assert "is no list of tasks" in refused(str(yaml))
    yaml.write_text("[]")
    assert "has no task" in refused(str(yaml))
