"""`task new` writes a folder that loads, passes the check and can be run at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from mle_ideator.benchmarks.cache import VARIABLE
from mle_ideator.benchmarks.declared.checking import check_task
from mle_ideator.benchmarks.declared.starting import new_task
from mle_ideator.benchmarks.references.computing import references_of
from mle_ideator.benchmarks.sources import load_task
from mle_ideator.cli.task import task as cli
from mle_ideator.errors import MleIdeatorError, TaskError


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))


def table(rows: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    size = rng.uniform(1, 9, rows).round(3)
    return pd.DataFrame(
        {
            "Id": [f"{number:03d}" for number in rng.permutation(rows)],
            "size": size,
            "code": rng.choice(["007", "NA", "012", "1e5"], rows),
            "kind": rng.choice(["a", 'quote "b"', "c: d"], rows),
            "price": (size * 3 + rng.normal(size=rows)).round(2),
            "sold": np.where(size + rng.normal(size=rows) > 5, "yes", "no"),
        }
    )


def written(tmp_path: Path, frame: pd.DataFrame) -> Path:
    path = tmp_path / "things.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("metric", [None, "auc", "qwk", "poisson_deviance"])
def test_example_loads_and_its_sample_is_valid(tmp_path, metric):
    folder = tmp_path / "parcels"
    new_task(folder, metric=metric)
    task, grader = load_task(str(folder))
    assert task.id == "parcels"
    assert task.metric.name == (metric or "rmse")
    assert task.rows == (480, 120)
    assert grader.grade(Path(task.inputs) / "sample_submission.csv").valid
    assert len(references_of(folder)) >= 100


@pytest.mark.parametrize(
    ("target", "metric", "wanted"),
    [
        ("price", None, ("rmse", "value", ("price",))),
        ("price", "mae", ("mae", "value", ("price",))),
        ("sold", None, ("auc", "probability", ("sold",))),
        ("kind", "log_loss", ("log_loss", "probability", ("a", "c: d", 'quote "b"'))),
        ("kind", "macro_f1", ("macro_f1", "label", ("kind",))),
    ],
)
def test_table_becomes_a_task(tmp_path, target, metric, wanted):
    new_task(tmp_path / "task", written(tmp_path, table()), target, metric)
    task, _ = load_task(str(tmp_path / "task"))
    assert (task.metric.name, task.prediction, task.targets) == wanted
    assert task.rows == (160, 40)
    train = pd.read_csv(Path(task.inputs) / "train.csv", dtype=str, keep_default_na=False)
    assert set(train["code"]) == {"007", "NA", "012", "1e5"}  # cells as they were
    assert "Id" not in train  # it only names rows; these are numbered anew
    assert list(train.columns[:1]) == ["id"]


def test_own_task_passes_the_check_with_warnings(tmp_path):
    many = pd.DataFrame({f"p{n}": np.arange(200) % (n + 2) for n in range(220)})
    frame = pd.concat([table(), many], axis=1)
    new_task(tmp_path / "task", written(tmp_path, frame), "price")
    found = {finding.check: finding for finding in check_task(tmp_path / "task")}
    assert [f for f in found.values() if f.verdict == "failed"] == []
    assert {f.check for f in found.values() if f.verdict == "warning"} == {"licence", "leaderboard"}


def test_rows_alike_or_without_target_are_left_out(tmp_path):
    frame = table().drop(columns="Id")
    doubled = pd.concat([frame, frame.head(30), frame.head(10).assign(price=None)])
    new_task(tmp_path / "task", written(tmp_path, doubled), "price")
    assert load_task(str(tmp_path / "task"))[0].rows == (160, 40)


def test_a_column_called_id_that_names_no_rows_stays(tmp_path):
    new_task(tmp_path / "task", written(tmp_path, table().assign(id=1).drop(columns="Id")), "price")
    task, _ = load_task(str(tmp_path / "task"))
    assert task.id_column == "row_id"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"target": "prise"}, "did you mean 'price'"),
        ({"target": "price", "metric": "rmsee"}, "did you mean 'rmse'"),
        ({"target": "price", "metric": "accuracy"}, "accuracy needs"),
        ({"target": "sold", "metric": "rmse"}, "rmse needs numbers"),
        ({"target": "price", "metric": "lrap"}, "lrap needs several targets"),
        ({"target": "price", "metric": "c_index"}, "c_index needs a column event"),
        ({"target": None}, "give both --train and --target"),
    ],
)
def test_refusals_leave_nothing(tmp_path, arguments, says):
    with pytest.raises(MleIdeatorError) as refused:
        new_task(tmp_path / "task", written(tmp_path, table()), **arguments)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "task").exists()


def test_folder_that_is_in_use_is_kept(tmp_path):
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "mine.txt").write_text("mine")
    with pytest.raises(TaskError, match="is there already"):
        new_task(tmp_path / "task")
    assert [path.name for path in (tmp_path / "task").iterdir()] == ["mine.txt"]


def test_few_rows_are_refused(tmp_path):
    with pytest.raises(TaskError, match="has 30 different rows; 50 are needed"):
        new_task(tmp_path / "task", written(tmp_path, table(30)), "price")


def test_command_tells_how_to_go_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(cli, ["new", "parcels", "--metric", "mae"])
    assert ran.exit_code == 0
    assert "mle-ideator run --task ./parcels" in ran.stdout
    assert load_task("./parcels")[0].metric.name == "mae"
