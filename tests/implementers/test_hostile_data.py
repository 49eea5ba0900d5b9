"""Data as it should not be: names, holes, constants, levels and sizes that break careless code."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

LONG = "x" * 300
NAMES = ['a"b', "c'''d", "line\nbreak", "tab\t", "Ünï 🐍", "back\\slash", "{brace}", "%s", "#",
         LONG, "class", "1", "__name__", ' "quoted" ', "a,b"]  # fmt: skip


@pytest.fixture
def make(tmp_path, toy_maker):
    """Makes a toy of two frames, a regression unless said otherwise."""

    def build(frame: pd.DataFrame, rows: int = 120, **settings):
        defaults = {"metric": "rmse", "prediction": "value"}
        frame.insert(0, "id", range(len(frame)))
        return toy_maker(tmp_path, frame[:rows], frame[rows:], **(defaults | settings))

    return build


def numbers(rows: int = 170, seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": random.normal(size=rows), "b": random.exponential(size=rows)})
    return frame.assign(y=frame["a"] * 2 + frame["b"])


EVERYTHING = ["model_boosting", "target_encoding", "frequency_encoding", "group_aggregates",
              "ratios", "interactions", "rare_levels", "clip_outliers",
              "impute_missing"]  # fmt: skip


@pytest.mark.parametrize("model", ["model_linear", "model_boosting"])
def test_names_that_look_like_code(make, model):
    random = np.random.default_rng(1)
    frame = numbers()
    for name in NAMES:
        frame[name] = random.normal(size=len(frame))
    for name in NAMES[:7]:
        frame[f"{name} kind"] = random.choice(["p", "q's", 'r"s', "ünï\n"], len(frame))
    toy = make(frame)
    assert {column.name for column in toy.profile.columns} >= set(NAMES)
    toy.check(toy.code(*EVERYTHING, model))


def test_a_target_and_id_with_hostile_names(make):
    frame = numbers().rename(columns={"y": "the 'y'\n\"target\""})
    toy = make(frame, targets=("the 'y'\n\"target\"",))
    toy.check(toy.code("model_linear"))


def test_columns_without_any_value_or_with_one_only(make):
    frame = numbers()
    toy = make(frame.assign(empty=np.nan, one="x", true=True, half=[np.nan, 3.0] * 85))
    kinds = {column.name: column.kind for column in toy.profile.columns}
    assert kinds["empty"] == kinds["one"] == kinds["true"] == kinds["half"] == "constant"
    toy.check(toy.code(*EVERYTHING))


def test_a_column_that_is_empty_in_train_but_not_in_test(make):
    frame = numbers().assign(late=np.nan, word=None)
    frame.loc[120:, "late"] = 1.0
    frame["word"] = frame["word"].astype(object)
    frame.loc[120:, "word"] = "new"
    toy = make(frame)
    toy.check(toy.code("model_linear", "interactions"))
    toy.check(toy.code(*EVERYTHING))


def test_no_usable_column_at_all(make):
    toy = make(pd.DataFrame({"same": 1, "y": range(170)}))
    toy.check(toy.code("model_linear"))
    toy.check(toy.code("model_boosting"))


@pytest.mark.parametrize("metric", ["rmse", "r2", "spearman", "rmsle"])
def test_a_constant_target(make, metric):
    higher = metric in ("r2", "spearman")
    toy = make(numbers().assign(y=3.0), metric=metric, higher=higher)
    toy.check(toy.code("model_boosting"))
    toy.check(toy.code("model_linear", "blend"))


@pytest.mark.parametrize(
    ("metric", "higher", "own"),
    [("mae", False, "mae"), ("c_index", True, "spearman"), ("own_loss", False, "rmse")],
)
def test_a_metric_that_is_not_known_has_one_like_it_take_its_place(make, metric, higher, own):
    toy = make(numbers(), metric=metric, higher=higher)
    assert toy.shape.metric == own
    assert f"{{{own}(y, answers):.6f}}" in toy.code("model_linear")


def test_what_a_side_table_tells_of_training_rows_alone_is_not_relied_on(make):
    random = np.random.default_rng(3)
    frame = numbers().assign(place=[f"place {number}" for number in range(170)])
    frame["y"] += random.normal(size=170)
    side = pd.DataFrame({"place": frame["place"], "size": frame["y"] + random.normal(size=170) / 9})
    toy = make(frame)
    alone = toy.check(toy.code("model_linear"))
    side.to_csv(toy.folder / "input" / "places.csv", index=False)
    assert toy.check(toy.code("model_linear", "join_tables")) < alone / 2
    side[:120].to_csv(toy.folder / "input" / "places.csv", index=False)
    assert toy.check(toy.code("model_linear", "join_tables")) == pytest.approx(alone)


def test_missing_targets_are_left_out(make):
    frame = numbers()
    frame.loc[::9, "y"] = np.nan
    toy = make(frame)
    toy.check(toy.code("model_boosting"))


def test_levels_that_only_test_has_and_levels_of_one_row(make):
    frame = numbers()
    frame["many"] = [f"level {number // 2}" for number in range(170)]
    frame["single"] = ["rest"] * 100 + [f"only {number}" for number in range(70)]
    toy = make(frame)
    for model in ("model_linear", "model_forest", "model_neighbours"):
        toy.check(toy.code(*EVERYTHING, model))


def test_huge_cardinalities(make):
    random = np.random.default_rng(2)
    frame = numbers(6000)
    frame["user_id"] = random.integers(0, 3000, 6000)
    frame["token"] = [f"{number:x}" for number in random.integers(0, 2**40, 6000)]
    toy = make(frame, rows=4000)
    kinds = {column.name: column.kind for column in toy.profile.columns}
    assert kinds["user_id"] == "category"
    toy.check(toy.code(*EVERYTHING))


def test_duplicate_rows(make):
    frame = pd.concat([numbers(40)] * 4, ignore_index=True)
    toy = make(frame)
    toy.check(toy.code("model_neighbours"))


def test_infinite_and_enormous_numbers(make):
    frame = numbers()
    frame["big"] = 1e200
    frame.loc[5, "a"], frame.loc[6, "b"] = np.inf, -np.inf
    frame.loc[::2, "big"] = -1e300
    toy = make(frame)
    toy.check(toy.code("model_linear", "interactions", "ratios"))


def test_numbers_mixed_with_words(make):
    frame = numbers()
    frame["mixed"] = ["12", "n/a?", "7"] * 56 + ["1", "2"]
    toy = make(frame)
    toy.check(toy.code(*EVERYTHING))


def test_a_class_of_one_row(make):
    frame = numbers()
    frame["y"] = ["a", "b"] * 85
    frame.loc[3, "y"] = "c"
    toy = make(frame, metric="log_loss", prediction="probability", classes=("a", "b", "c"))
    for model in ("model_linear", "model_boosting", "model_neighbours", "model_kernel"):
        toy.check(toy.code(model))
    toy.check(toy.code("model_boosting", "stack", "calibrate"))


def test_ids_like_007_and_na_are_kept(make, tmp_path, toy_maker):
    frame = numbers()
    frame["id"] = ["007", "NA", "1e5", "00e12345", *map(str, range(166))]
    toy = toy_maker(tmp_path, frame[100:], frame[:100], metric="rmse", prediction="value")
    toy.check(toy.code("model_linear"))


def test_wide_tables_have_a_profile_of_bounded_length(make):
    random = np.random.default_rng(3)
    wide = pd.DataFrame(random.normal(size=(60, 900)), columns=[f"gene {n}x" for n in range(900)])
    wide["kind"] = ["p", "q"] * 30
    wide["y"] = wide["gene 3x"]
    toy = make(wide, rows=40)
    profile = toy.profile
    assert len(profile.line()) < 15_000
    assert profile.unlisted + len(profile.columns) == 901
    assert "kind" in {column.name for column in profile.columns}
    toy.check(toy.code("model_linear"))


@pytest.mark.parametrize("rows", [3, 6, 12])
def test_very_few_rows(make, rows):
    toy = make(numbers(30), rows=rows)
    toy.check(toy.code("model_linear", folds=2))
    toy.check(toy.code("model_boosting", folds=2))
