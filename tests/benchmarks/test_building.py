"""The steps that every task goes through, and the cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mle_ideator.benchmarks import building
from mle_ideator.benchmarks.cache import VARIABLE, built_once, cache_folder
from mle_ideator.benchmarks.trivial import trivial_predictions
from mle_ideator.errors import TaskError

RACE = """
import sys, time
from pathlib import Path
from mle_ideator.benchmarks.cache import built_once

def build(folder):
    time.sleep(0.5)
    (folder / "made_by").write_text(sys.argv[1])

folder = built_once("task-1", build, lambda folder: (folder / "made_by").exists())
print(folder, (folder / "made_by").read_text())
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache" / "tasks"


def write_mark(folder: Path) -> None:
    (folder / "mark").write_text("whole")


def is_whole(folder: Path) -> bool:
    return (folder / "mark").read_text() == "whole"


def test_split_keeps_the_shares_and_loses_no_row():
    frame = pd.DataFrame({"x": range(1000), "y": ["a"] * 900 + ["b"] * 100})
    train, test = building.random_split(frame, 300, np.random.default_rng(0), by="y")
    assert (len(train), len(test)) == (700, 300)
    assert sorted([*train["x"], *test["x"]]) == list(range(1000))
    assert (test["y"] == "b").sum() == 30


def test_blocks_are_never_cut():
    test = pd.DataFrame({"day": [number // 7 for number in range(70)]})
    part = building.halves(test, np.random.default_rng(0), "day")
    assert pd.Series(part).groupby(test["day"]).nunique().max() == 1
    assert part.count("public") == part.count("private") == 35


def test_numbers_are_written_equal_whatever_their_type(tmp_path):
    frame = pd.DataFrame({"whole": [1.0, 2.0], "long": [0.1 + 0.2, 1 / 3], "text": ["é", "a,b"]})
    building.write_csv(frame, tmp_path / "a.csv")
    written = (tmp_path / "a.csv").read_bytes()
    assert written.decode() == 'whole,long,text\n1,0.3,é\n2,0.3333333333,"a,b"\n'
    assert (tmp_path / "a.csv").stat().st_mode & 0o777 == 0o444


@pytest.mark.parametrize(
    ("metric", "prediction", "classes", "expected"),
    [
        ("rmse", "value", (), {"y": 5.0}),
        ("mae", "value", (), {"y": 2.0}),
        ("rmsle", "value", (), {"y": float(np.expm1(np.log1p([1, 2, 12]).mean()))}),
        ("accuracy", "label", ("1", "12", "2"), {"y": "1"}),
        ("auc", "probability", ("1", "2"), {"y": 1 / 3}),
        ("log_loss", "probability", ("1", "2", "12"), {"1": 1 / 3, "2": 1 / 3, "12": 1 / 3}),
    ],
)
def test_trivial_solution_is_the_best_constant(metric, prediction, classes, expected):
    targets = pd.DataFrame({"y": [1, 2, 12]})
    assert trivial_predictions(targets, metric, prediction, classes) == expected


def test_cache_builds_once_and_rebuilds_what_was_damaged(cache):
    folder = built_once("task-1", write_mark, is_whole)
    assert folder == cache / "task-1"
    built_once("task-1", lambda _: pytest.fail("built again"), is_whole)
    (folder / "mark").write_text("broken")
    assert is_whole(built_once("task-1", write_mark, is_whole))
    assert [path.name for path in cache.iterdir()] == ["task-1"]


def test_remains_of_killed_builds_are_swept_after_a_day(cache):
    for name in (".task-1-old", ".task-1-running"):
        (cache / name).mkdir(parents=True)
        write_mark(cache / name)
    os.utime(cache / ".task-1-old", (0, 0))
    built_once("task-1", write_mark, is_whole)
    assert sorted(path.name for path in cache.iterdir()) == [".task-1-running", "task-1"]


def test_failed_build_leaves_nothing(cache):
    def fail(folder: Path) -> None:
        (folder / "half").write_text("")
        raise TaskError("no data")

    with pytest.raises(TaskError, match="no data"):
        built_once("task-1", fail, is_whole)
    assert list(cache.iterdir()) == []


def test_processes_that_build_at_once_share_one_whole_folder(cache):
    environment = {**os.environ, VARIABLE: str(cache.parent)}
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, str(number)],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    said = [run.communicate(timeout=60)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert len(set(said)) == 1
    assert said[0].startswith(str(cache / "task-1"))
    assert [path.name for path in cache.iterdir()] == ["task-1"]


def test_cache_that_can_not_be_written_says_how_to_choose_another(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "file"))
    with pytest.raises(TaskError, match=f"can not write .*set {VARIABLE} to a folder"):
        built_once("task-1", write_mark, is_whole)


def test_cache_lies_in_the_users_cache_folder_by_default(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert cache_folder().parts[-2:] == ("mle-ideator", "tasks")
