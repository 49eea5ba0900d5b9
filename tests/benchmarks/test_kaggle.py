"""A downloaded competition as a task; and downloading it, with a fake of Kaggle's client."""

from __future__ import annotations

import os
import sys
import types
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mle_ideator.benchmarks.cache import VARIABLE as CACHE
from mle_ideator.benchmarks.kaggle import KaggleFolders
from mle_ideator.benchmarks.kaggle.assembling import THEIRS, built_folder
from mle_ideator.benchmarks.kaggle.downloading import download
from mle_ideator.benchmarks.running import run_to_end, set_up
from mle_ideator.benchmarks.sources import load_task
from mle_ideator.config import RunConfig
from mle_ideator.errors import TaskError, UsageError
from mle_ideator.journal import read_journal
from mle_ideator.limits import Limits
from mle_ideator.protocols import TaskSource
from mle_ideator.results import record_of
from mle_ideator.types import Task

ROWS, TEST_ROWS = 120, 30


def table(path: Path | str) -> pd.DataFrame:
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def people(rows: int, first: int) -> pd.DataFrame:
    rng = np.random.default_rng(first)
    frame = pd.DataFrame({"PassengerId": [f"{n:04d}" for n in range(first, first + rows)]})
    frame["age"] = rng.integers(1, 80, rows)
    frame["fare"] = rng.normal(30, 9, rows).round(3)
    frame["Survived"] = (frame.age + rng.normal(0, 5, rows) < 40).astype(int)
    frame["Status"] = np.where(frame.age < 25, "C", np.where(frame.age < 50, "CL", "D"))
    return frame


class Download:
    """A folder as Kaggle's client leaves it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.train, self.test = people(ROWS, 1), people(TEST_ROWS, 1001)
        ids = self.test.PassengerId.sample(frac=1, random_state=2)
        self.write("train.csv", self.train.drop(columns="Status"))
        self.write("test.csv", self.test.drop(columns=["Survived", "Status"]))
        self.write("sample_submission.csv", pd.DataFrame({"PassengerId": ids, "Survived": 0}))

    def write(self, name: str, frame: pd.DataFrame) -> None:
        frame.to_csv(self.folder / name, index=False)

    def declare(self, text: str) -> None:
        (self.folder / "kaggle.yaml").write_text(text)

    def load(self) -> Task:
        return load_task(f"kaggle:{self.folder}")[0]

    @property
    def built(self) -> Path:
        return built_folder(self.folder)

    def refused(self) -> str:
        with pytest.raises(TaskError) as refused:
            self.load()
        line = str(refused.value)
        assert "\n" not in line
        return line.replace(f"{self.folder}/", "")


@pytest.fixture
def titanic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Download:
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))
    return Download(tmp_path / "titanic")


# ----------------------------------------------------------------------------------- the task


def test_a_downloaded_competition_is_a_task(titanic: Download):
    assert isinstance(KaggleFolders(), TaskSource)
    titanic.declare("metric: accuracy\n")
    task, grader = load_task(f"kaggle:{titanic.folder}")
    assert task.id == "kaggle-titanic"
    assert task.source == "kaggle.com/competitions/titanic"
    assert (task.targets, task.classes) == (("Survived",), ("0", "1"))
    assert (task.metric.name, task.metric.higher_is_better) == ("accuracy", True)
    assert task.id_column == "PassengerId"
    train, test = table(f"{task.inputs}/train.csv"), table(f"{task.inputs}/test.csv")
    kept = ROWS - len(train)
    assert kept == pytest.approx(ROWS / 5, abs=3)
    assert task.rows == (len(train), kept + TEST_ROWS)
    assert set(titanic.test.PassengerId) < set(test.PassengerId)
    assert not set(train.PassengerId) & set(test.PassengerId)
    grade = grader.grade(Path(task.inputs) / "sample_submission.csv")
    assert grade.valid
    assert grade.private == task.baseline.private


def test_the_rows_that_are_graded_are_masked_and_the_hold_out_stays_the_same(titanic: Download):
    task = titanic.load()
    built = titanic.built.parent
    assert {str(titanic.folder), str(built / THEIRS), str(built / "data" / "private")} <= {
        *task.masked
    }
    assert str(built / "data" / "whole") in task.masked
    before = table(f"{task.inputs}/train.csv")
    os.utime(titanic.folder / "train.csv", ns=(1, 1))  # built anew
    assert titanic.built != built / "data"
    assert table(f"{titanic.load().inputs}/train.csv").equals(before)


def test_built_once(titanic: Download):
    titanic.load()
    made = titanic.built.stat().st_mtime_ns
    titanic.load()
    assert titanic.built.stat().st_mtime_ns == made


@pytest.mark.parametrize("way", ["one archive", "an archive a file"])
def test_zipped_files(titanic: Download, way: str):
    open_task = titanic.load()
    before = table(f"{open_task.inputs}/train.csv")
    names = ("train.csv", "test.csv", "sample_submission.csv")
    for name in names:
        archive = "titanic.zip" if way == "one archive" else f"{name}.zip"
        with zipfile.ZipFile(titanic.folder / archive, "a") as packed:
            packed.write(titanic.folder / name, f"data/{name}")
            if way == "one archive" and name == names[0]:
                packed.writestr("__MACOSX/data/._train.csv", b"junk")
    for name in names:
        (titanic.folder / name).unlink()
    assert table(f"{titanic.load().inputs}/train.csv").equals(before)
    assert not (titanic.built.parent / THEIRS / "unpacked").exists()


def test_columns_of_one_file_only_are_left_out_and_said(titanic: Download):
    titanic.write("train.csv", titanic.train.assign(boat="7"))
    titanic.write("test.csv", titanic.test.drop(columns=["Survived", "Status"]).assign(late=1))
    task = titanic.load()
    assert "boat" not in table(f"{task.inputs}/train.csv")
    assert "columns that only train.csv has were left out: Status, boat." in task.description
    assert "columns that only test.csv has were left out: late." in task.description


def test_the_competitions_own_text_comes_first(titanic: Download):
    (titanic.folder / "description.md").write_text("# Who survives?\n")
    assert titanic.load().description.startswith("# Who survives?\n\n# Predict Survived")


def test_what_can_not_be_used_is_said_in_one_line(titanic: Download):
    titanic.declare("metrik: auc\n")
    assert "metrik" in titanic.refused()
    titanic.declare("metric: nonsense\n")
    assert "unknown metric 'nonsense'" in titanic.refused()
    titanic.declare("target: Surived\n")
    assert "no column 'Surived'" in titanic.refused()
    titanic.declare("train: rows.csv\n")
    assert "has no rows.csv" in titanic.refused()
    titanic.declare("")
    titanic.write("my_sample_submission.csv", titanic.test[["PassengerId"]].assign(Survived=1))
    assert "several files that could be the sample" in titanic.refused()
    (titanic.folder / "my_sample_submission.csv").unlink()
    titanic.write("sample_submission.csv", titanic.test[["PassengerId", "Survived"]].head(9))
    assert "not the same, each once" in titanic.refused()
    (titanic.folder / "sample_submission.csv").unlink()
    assert "no sample_submission.csv, zipped or not" in titanic.refused()
    (titanic.folder / "all.zip").write_bytes(b"PK\x03\x04 cut off")
    assert "no whole zip archive" in titanic.refused()
    titanic.folder = titanic.folder / "none"
    assert "kaggle competitions download -c NAME" in titanic.refused()


def test_a_target_that_can_not_be_told_is_asked_for(titanic: Download):
    titanic.write("train.csv", titanic.train)
    ids = titanic.test[["PassengerId"]]
    titanic.write("sample_submission.csv", ids.assign(answer=0))
    assert "it could be Survived, Status; name it in" in titanic.refused()
    titanic.write("sample_submission.csv", ids.assign(Survived=0, Status="C"))
    assert "several targets (Survived, Status)" in titanic.refused()
    titanic.declare("target: Status\nmetric: accuracy\n")
    assert titanic.load().targets == ("Status",)


# ---------------------------------------------------------------------------------- exporting


def predicted(task: Task, path: Path, predict: dict[str, str]) -> Path:
    """A submission that predicts by id, and 0 for the held-out rows."""
    ids = table(f"{task.inputs}/test.csv")[task.id_column]
    frame = pd.DataFrame({task.id_column: ids})
    for name in task.targets:
        frame[name] = [predict.get(f"{one}/{name}", "0") for one in ids]
    frame.to_csv(path, index=False)
    return path


def test_predictions_go_home_in_the_samples_form(titanic: Download, tmp_path: Path):
    titanic.declare("metric: auc\n")
    task = titanic.load()
    ids = titanic.test.PassengerId
    predict = {f"{one}/Survived": f"0.{one}" for one in ids}
    submission = predicted(task, tmp_path / "s.csv", predict)
    home = tmp_path / "home.csv"
    KaggleFolders().export(str(titanic.folder), submission, home)
    sample = table(titanic.folder / "sample_submission.csv")
    assert table(home).PassengerId.tolist() == sample.PassengerId.tolist()
    assert table(home).columns.tolist() == ["PassengerId", "Survived"]
    assert table(home).Survived.tolist() == [f"0.{one}" for one in sample.PassengerId]


def test_classes_under_the_samples_names(titanic: Download, tmp_path: Path):
    titanic.declare("target: Status\nmetric: log_loss\n")
    titanic.write("train.csv", titanic.train.drop(columns="Survived"))
    names = ["Status_D", "Status_CL", "Status_C"]
    ids = titanic.test[["PassengerId"]]
    titanic.write("sample_submission.csv", ids.assign(**dict.fromkeys(names, 0.3)))
    task = titanic.load()
    assert task.targets == ("C", "CL", "D")
    predict = {f"{one}/{name}": name for one in ids.PassengerId for name in task.targets}
    home = tmp_path / "home.csv"
    submission = predicted(task, tmp_path / "s.csv", predict)
    KaggleFolders().export(str(titanic.folder), submission, home)
    assert table(home).columns.tolist() == ["PassengerId", *names]
    assert table(home).iloc[0, 1:].tolist() == ["D", "CL", "C"]
    titanic.write("sample_submission.csv", ids.assign(first=1, second=2))
    task = titanic.load()
    with pytest.raises(TaskError, match="choose a metric that needs what the sample asks for"):
        KaggleFolders().export(str(titanic.folder), submission, home)


def test_rows_without_an_id_keep_the_order_of_the_test_file(titanic: Download, tmp_path: Path):
    """The sample counts rows that the test file does not name."""
    for name in ("train.csv", "test.csv"):
        titanic.write(name, table(titanic.folder / name).drop(columns="PassengerId"))
    titanic.write("sample_submission.csv", pd.DataFrame({"row": range(30), "Survived": 0}))
    task = titanic.load()
    order = table(titanic.built / "private" / "test_rows.csv")
    predict = {f"{one}/Survived": str(n) for n, one in enumerate(order.iloc[:, 0])}
    home = tmp_path / "home.csv"
    submission = predicted(task, tmp_path / "s.csv", predict)
    KaggleFolders().export(str(titanic.folder), submission, home)
    assert table(home).Survived.tolist() == table(home).row.tolist() == [*map(str, range(30))]


@pytest.mark.slow
async def test_a_session_and_what_it_takes_home(titanic: Download, tmp_path: Path):
    titanic.declare("metric: accuracy\n")
    config = RunConfig(
        task=f"kaggle:{titanic.folder}", sandbox="local", limits=Limits(steps=3, help_requests=0)
    )
    run = tmp_path / "run"
    run.mkdir()
    await run_to_end(set_up(config, run))
    record = record_of(read_journal(run))
    assert record.reproduced is not None
    whole = KaggleFolders().whole_inputs(str(titanic.folder))
    assert len(table(whole / "train.csv")) == ROWS
    home = tmp_path / "home.csv"
    KaggleFolders().export(str(titanic.folder), run / "submission.csv", home)
    sample = table(titanic.folder / "sample_submission.csv")
    assert table(home).PassengerId.tolist() == sample.PassengerId.tolist()
    right = table(home).set_index("PassengerId").Survived.astype(int)
    truth = titanic.test.set_index("PassengerId").Survived.loc[right.index]
    assert (right == truth).mean() > 0.7


# -------------------------------------------------------------------------------- downloading


class HTTPError(OSError):
    """As in requests."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.response = types.SimpleNamespace(status_code=status)


class FakeApi:
    """What is used of `KaggleApi`."""

    failure: BaseException | None = None
    sends: bytes | None = b"PK"
    asked: tuple[str, bool] | None = None

    def authenticate(self) -> None:
        print("how to log in")
        if isinstance(self.failure, SystemExit):
            raise self.failure

    def competition_download_files(self, competition: str, path: str, quiet: bool) -> None:
        FakeApi.asked = (competition, quiet)
        if self.failure:
            raise self.failure
        if self.sends is not None:
            (Path(path) / f"{competition}.zip").write_bytes(self.sends)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> type[FakeApi]:
    module = types.ModuleType("kaggle.api.kaggle_api_extended")
    module.KaggleApi = FakeApi
    for name in ("kaggle", "kaggle.api"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(FakeApi, "failure", None)
    monkeypatch.setattr(FakeApi, "sends", b"PK")
    return FakeApi


def test_downloading(client: type[FakeApi], tmp_path: Path, capsys):
    archive = download("titanic", tmp_path / "new" / "titanic")
    assert archive == tmp_path / "new" / "titanic" / "titanic.zip"
    assert archive.read_bytes() == b"PK"
    assert client.asked == ("titanic", True)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("failure", "why"),
    [
        (SystemExit(1), "no credentials of Kaggle; log in with `kaggle auth login`"),
        (HTTPError(401), "does not accept the credentials"),
        (HTTPError(403), r"accept them at https://www\.kaggle\.com/competitions/titanic/rules"),
        (HTTPError(404), "no competition 'titanic'"),
        (HTTPError(429), "too many requests"),
        (HTTPError(500), "Kaggle answered 500"),
        (ConnectionError(), "can not be reached"),
        (OSError(28, "No space left on device"), "can not be written to .*No space left"),
    ],
)
def test_why_a_download_fails(
    client: type[FakeApi], tmp_path: Path, failure: BaseException, why: str
):
    client.failure = failure
    with pytest.raises(UsageError, match=why) as refused:
        download("titanic", tmp_path)
    assert "\n" not in str(refused.value)


def test_an_answer_without_files_and_names_that_are_none(client: type[FakeApi], tmp_path: Path):
    client.sends = None
    with pytest.raises(UsageError, match=r"has sent no titanic\.zip"):
        download("titanic", tmp_path)
    for name in ("../titanic", "", "a/b"):
        with pytest.raises(UsageError, match="is no competition"):
            download(name, tmp_path)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setitem(sys.modules, "kaggle", None)
    monkeypatch.delitem(sys.modules, "kaggle.api.kaggle_api_extended", raising=False)
    with pytest.raises(UsageError, match=r"pip install 'mle-ideator\[kaggle\]'"):
        download("titanic", tmp_path)
