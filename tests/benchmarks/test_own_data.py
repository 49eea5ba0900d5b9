"""A person's own files: what is made of them, and each way in which they can be unusable."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mle_ideator.benchmarks.own_data import export_predictions, load_own_data, remarks_of
from mle_ideator.config import OwnData
from mle_ideator.errors import TaskError
from mle_ideator.protocols import Grader
from mle_ideator.types import Task

ROWS = 200


def people(rows: int = ROWS, first: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(first)
    age = rng.integers(18, 90, rows)
    return pd.DataFrame(
        {
            "Id": [f"{number:05d}" for number in range(first, first + rows)],
            "age": age,
            "town": rng.choice(["Köln", "São Paulo", "NA", ""], rows),
            "income": rng.normal(1000, 300, rows).round(2),
            "price": (age * 2 + rng.normal(0, 5, rows)).round(2),
            "buys": np.where(age + rng.normal(0, 9, rows) > 60, "yes", "no"),
            "level": rng.choice(["low", "mid", "high"], rows),
        }
    )


def written(path: Path, frame: pd.DataFrame, **how: object) -> str:
    frame.to_csv(path, index=False, **how)
    return str(path)


def table(path: Path | str) -> pd.DataFrame:
    return pd.read_csv(path, dtype=str, keep_default_na=False)


class Bench:
    """Makes a task of files in a temporary folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.built = folder, folder / "built"

    def load(self, train: str | pd.DataFrame, target: str = "price", **own: object):
        if isinstance(train, pd.DataFrame):
            train = written(self.folder / "train.csv", train)
        return load_own_data(OwnData(train=train, target=target, **own), self.built, seed=3)

    def text(self, content: str | bytes, name: str = "train.csv") -> str:
        data = content if isinstance(content, bytes) else content.encode()
        (self.folder / name).write_bytes(data)
        return str(self.folder / name)

    def refused(self, train: str | pd.DataFrame, target: str = "price", **own: object) -> str:
        """What the person reads, without the path of the folder."""
        with pytest.raises(TaskError) as refused:
            self.load(train, target, **own)
        line = str(refused.value)
        assert "\n" not in line
        assert not self.built.exists()
        return line.replace(f"{self.folder}/", "")

    @property
    def answers(self) -> pd.DataFrame:
        return table(self.built / "private" / "answers.csv")

    def public(self, name: str) -> pd.DataFrame:
        return table(self.built / "public" / f"{name}.csv")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


# ------------------------------------------------------------------------- what is made of it


def perfect(bench: Bench, task: Task, grader: Grader, truth: pd.Series) -> pd.DataFrame:
    test = bench.public("test")
    return pd.DataFrame({task.id_column: test[task.id_column], task.targets[0]: truth.to_numpy()})


def test_hold_out_is_graded_and_own_rows_are_predicted(bench, tmp_path):
    train, test = people(), people(50, first=901)
    path = written(tmp_path / "test.csv", test.drop(columns="price"))
    task, grader = bench.load(train, test=path, metric="rmse")
    assert task.rows == (160, 90)
    assert (task.split, task.id_column, task.prediction) == ("own", "Id", "value")
    parts = bench.answers["part"].value_counts().to_dict()
    assert parts == {"ignore": 50, "public": 20, "private": 20}
    known = pd.concat([train, test]).set_index("Id")["price"]
    truth = known.loc[bench.public("test")["Id"]]
    submission = perfect(bench, task, grader, truth)
    submission.to_csv(tmp_path / "s.csv", index=False)
    grade = grader.grade(tmp_path / "s.csv")
    assert (grade.public.value, grade.private.value) == (0.0, 0.0)
    submission.iloc[1:].to_csv(tmp_path / "s.csv", index=False)
    assert grader.grade(tmp_path / "s.csv").problems[0].code == "missing_ids"


def test_own_rows_are_not_scored(bench, tmp_path):
    train = people()
    path = written(tmp_path / "test.csv", people(50, first=901).drop(columns="price"))
    _, grader = bench.load(train, test=path, metric="rmse")
    test = bench.public("test").merge(train[["Id", "price"]], on="Id", how="left")
    test["price"] = test["price"].fillna(-1e6)
    test[["Id", "price"]].to_csv(tmp_path / "s.csv", index=False)
    assert grader.grade(tmp_path / "s.csv").private.value == 0.0


def test_agents_get_neither_kept_rows_nor_answers(bench):
    data = people()
    task, _ = bench.load(data, metric="rmse")
    train, test = bench.public("train"), bench.public("test")
    assert "price" not in test
    assert not set(train["Id"]) & set(test["Id"])
    assert sorted([*train["Id"], *test["Id"]]) == data["Id"].tolist()
    assert bench.public("sample_submission")["price"].nunique() == 1
    assert (bench.built / "private").stat().st_mode & 0o777 == 0o700
    assert str(bench.folder / "train.csv") in task.masked
    assert str(bench.built / "private") in task.masked
    assert Path(task.inputs) == bench.built / "public"


def test_cells_go_through_as_they_are(bench):
    bench.load(people(), metric="rmse")
    both = pd.concat([bench.public("train"), bench.public("test")]).sort_values("Id")
    original = table(bench.folder / "train.csv")
    assert both["Id"].tolist()[0] == "00001"
    for name in ("age", "town", "income"):
        assert both[name].tolist() == original[name].tolist()


def test_same_seed_same_files_other_seed_other_hold_out(bench, tmp_path):
    path = written(tmp_path / "train.csv", people())
    kept = []
    for place, seed in enumerate((1, 1, 2)):
        load_own_data(OwnData(train=path, target="price"), tmp_path / str(place), seed=seed)
        kept.append((tmp_path / str(place) / "private" / "answers.csv").read_bytes())
    assert kept[0] == kept[1] != kept[2]


def test_rows_without_a_usable_id_are_numbered(bench, tmp_path):
    test = people(30).drop(columns="price")  # the same ids as in train
    task, _ = bench.load(people(), test=written(tmp_path / "test.csv", test), id_column="Id")
    assert task.id_column == "row_id"
    assert bench.public("train")["row_id"].tolist() == [str(n) for n in range(160)]
    assert bench.public("test")["row_id"].tolist() == [str(n) for n in range(160, 230)]
    assert "Id" in bench.public("test")


def test_predictions_come_back_in_the_persons_own_form(bench, tmp_path):
    test = people(30).drop(columns="price")
    path = written(tmp_path / "test.csv", test)
    bench.load(people(), test=path, id_column="Id")
    submission = bench.public("test")[["row_id", "age"]].rename(columns={"age": "price"})
    submission.sample(frac=1, random_state=0).to_csv(tmp_path / "s.csv", index=False)
    assert export_predictions(bench.built, tmp_path / "s.csv", tmp_path / "predictions.csv")
    predicted = table(tmp_path / "predictions.csv")
    assert predicted.columns.tolist() == ["Id", "price"]
    assert predicted["Id"].tolist() == test["Id"].tolist()
    assert predicted["price"].tolist() == test["age"].astype(str).tolist()


def test_predictions_without_an_id_are_counted(bench, tmp_path):
    test = people(30).drop(columns=["price", "Id"])
    path = written(tmp_path / "test.csv", test)
    bench.load(people().drop(columns="Id"), test=path)
    sample = bench.built / "public" / "sample_submission.csv"
    assert export_predictions(bench.built, sample, tmp_path / "predictions.csv")
    assert table(tmp_path / "predictions.csv")["row"].tolist() == [str(n) for n in range(30)]


def test_no_predictions_without_test_rows(bench, tmp_path):
    bench.load(people())
    sample = bench.built / "public" / "sample_submission.csv"
    assert not export_predictions(bench.built, sample, tmp_path / "predictions.csv")
    assert not (tmp_path / "predictions.csv").exists()


def test_submission_that_lacks_own_rows_is_refused(bench, tmp_path):
    path = written(tmp_path / "test.csv", people(30, first=900).drop(columns="price"))
    bench.load(people(), test=path)
    (tmp_path / "s.csv").write_text("Id,price\n00001,1\n")
    with pytest.raises(TaskError, match="does not predict all rows of the test file"):
        export_predictions(bench.built, tmp_path / "s.csv", tmp_path / "p.csv")


def test_equal_rows_stay_together(bench):
    data = people(100)
    doubled = pd.concat([data, data]).assign(Id=range(200))
    bench.load(doubled, metric="rmse")
    shared = ["age", "town", "income", "buys", "level"]
    assert not bench.public("train").merge(bench.public("test"), on=shared).shape[0]
    graded = bench.public("test").merge(bench.answers, on="Id")
    assert graded.groupby(shared)["part"].nunique().max() == 1


@pytest.mark.parametrize(
    ("target", "metric", "kind", "prediction"),
    [
        ("price", "rmse", "tabular-regression", "value"),
        ("buys", "auc", "tabular-classification", "probability"),
        ("level", "accuracy", "tabular-classification", "label"),
    ],
)
def test_metric_fits_the_target(bench, target, metric, kind, prediction):
    task, _ = bench.load(people(), target)
    assert (task.metric.name, task.type, task.prediction) == (metric, kind, prediction)
    assert remarks_of(bench.built) == [f"no metric was named; {metric} was taken."]
    assert f"{metric} was taken" in task.description
    assert task.baseline.private is not None


@pytest.mark.parametrize("metric", ["auc", "log_loss", "f1", "macro_f1", "accuracy", "mcc"])
def test_metrics_of_two_classes(bench, metric):
    task, grader = bench.load(people(), "buys", metric=metric)
    assert task.classes == ("no", "yes")
    grade = grader.grade(bench.built / "public" / "sample_submission.csv")
    assert grade.valid
    shares = bench.answers.groupby("part")["buys"].apply(lambda y: (y == "yes").mean())
    assert abs(shares["public"] - shares["private"]) < 0.1


def test_probabilities_of_many_classes(bench):
    task, grader = bench.load(people(), "level", metric="log_loss")
    assert task.targets == task.classes == ("high", "low", "mid")
    assert grader.grade(bench.built / "public" / "sample_submission.csv").valid


def test_rare_classes_are_said(bench):
    data = people()
    data.loc[:1, "level"] = "odd"
    bench.load(data, "level")
    assert "classes with fewer than 4 rows are hardly graded: 'odd'." in remarks_of(bench.built)


def test_sentences_make_a_text_task(bench):
    data = people().assign(review=[f"it was worth {n} of my euros" for n in range(ROWS)])
    assert bench.load(data)[0].type == "text-regression"


def test_column_called_part_is_kept(bench):
    bench.load(people().assign(part="motor"), metric="rmse")
    assert set(bench.public("test")["part"]) == {"motor"}


def test_rows_without_a_target_are_left_out_and_said(bench):
    data = people().astype({"price": object})
    data.loc[:4, "price"] = ["", "NA", "nan", "null", " "]
    task, _ = bench.load(data, metric="rmse")
    assert sum(task.rows) == ROWS - 5
    assert remarks_of(bench.built) == ["5 rows of train.csv without a target left out."]


# ------------------------------------------------------------------------------ forms of files


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_delimiters_and_encodings(bench, delimiter, encoding):
    path = written(bench.folder / "train.csv", people(), sep=delimiter, encoding=encoding)
    bench.load(path)
    assert "Köln" in set(bench.public("train")["town"])
    assert remarks_of(bench.built) == ["no metric was named; rmse was taken."]


def test_windows_encoding_is_said(bench):
    bench.load(written(bench.folder / "train.csv", people(), encoding="cp1252"), metric="rmse")
    assert "Köln" in set(bench.public("train")["town"])
    assert remarks_of(bench.built) == [
        "train.csv is not UTF-8 and was read as cp1252: check its special letters."
    ]


def test_crlf_quotes_and_newlines_in_cells(bench):
    data = people().assign(note='said "yes",\nthen left')
    bench.load(written(bench.folder / "train.csv", data, lineterminator="\r\n"))
    assert set(bench.public("train")["note"]) == {'said "yes",\nthen left'}


def test_gzip(bench):
    text = people().to_csv(index=False).encode()
    task, _ = bench.load(bench.text(gzip.compress(text), "train.csv.gz"))
    assert (sum(task.rows), task.id) == (ROWS, "own-train")


def test_parquet(bench):
    data = people().assign(
        day=pd.Timestamp("2026-01-01"), town=lambda d: d["town"].astype("category")
    )
    data.loc[3, "income"] = np.nan
    data.to_parquet(bench.folder / "train.parquet")
    task, _ = bench.load(str(bench.folder / "train.parquet"), metric="rmse")
    both = pd.concat([bench.public("train"), bench.public("test")]).set_index("Id")
    assert both.loc["00004", "income"] == ""
    assert both.loc["00001", "day"].startswith("2026-01-01")
    assert "Köln" in set(both["town"])
    assert sum(task.rows) == ROWS


def test_row_numbers_of_pandas_are_left_out_and_said(bench):
    people().to_csv(bench.folder / "train.csv")
    bench.load(str(bench.folder / "train.csv"), metric="rmse")
    assert bench.public("train").columns[0] == "Id"
    assert remarks_of(bench.built) == [
        "the first column of train.csv only counts its rows; it was left out."
    ]


# ----------------------------------------------------------------------------- unusable files


def test_missing_file(bench):
    bench.text("a,b\n", "trian.csv")
    said = bench.refused(str(bench.folder / "train.csv"))
    assert said == "there is no file train.csv; did you mean trian.csv?"


def test_folder(bench):
    (bench.folder / "data").mkdir()
    said = bench.refused(str(bench.folder / "data"))
    assert said == "data is a folder; name a CSV, TSV or Parquet file."


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "train.csv is empty."),
        (b" \n\n", "train.csv is empty."),
        (b"a,price\n", "train.csv has a header and no rows."),
        (b"price\n1\n2\n", "train.csv has one column only; columns are told apart by a comma, "
         "semicolon, tab or |."),
        (b"1,2,3\n4,5,6\n", "train.csv has numbers in its first line where column names are "
         "expected; add a header."),
        (b"a,b,a,price\n1,2,3,4\n", "train.csv has columns of the same name: 'a'."),
        (b"a,price\n1,2\n3,4,5\n6,7,8\n", "train.csv: 2 rows without as many cells as the "
         "header has (2); the first is row 3, with 3."),
        (b"PK\x03\x04rest", "train.csv is an Excel or zip file; save the table as CSV or Parquet."),
        (b"\x89HDF\r\n\x1a\n\x00\x00\x01\x00", "train.csv is no text file; CSV, TSV and Parquet "
         "can be read."),
        (b"\x1f\x8b\x08broken", "train.csv is a broken gzip file: "),
        (b"PAR1 and no more", "train.csv can not be read as Parquet: "),
    ],
)  # fmt: skip
def test_unreadable_file(bench, content, line):
    said = bench.refused(bench.text(content))
    assert said == line or (line.endswith(": ") and said.startswith(line))


def test_nested_parquet_column(bench):
    people().assign(tags=[["a"]] * ROWS).to_parquet(bench.folder / "train.parquet")
    said = bench.refused(str(bench.folder / "train.parquet"))
    assert "column 'tags' holds list<" in said
    assert "only numbers, text and dates can be used" in said


def test_file_that_must_not_be_read(bench, monkeypatch):
    path = bench.text("a,price\n1,2\n")

    def denied(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", denied)
    assert bench.refused(path) == "train.csv can not be read: Permission denied."


# ---------------------------------------------------------------------------- unusable targets


@pytest.mark.parametrize(
    ("target", "metric", "line"),
    [
        ("prise", None, "train.csv: unknown target column 'prise'; did you mean 'price'?"),
        ("price", "rsme", "unknown metric 'rsme'; did you mean 'rmse'?"),
        ("price", "lrap", "lrap needs several target columns; choose another metric."),
        ("buys", "rmse", "rmse needs numbers, but the target 'buys' has 'no' and the like in 200 "
         "of 200 rows."),
        ("price", "auc", "auc needs two classes, or few, but the target 'price' has 199 different "
         "values in 200 rows."),
        ("level", "f1", "f1 needs two classes, but the target 'level' has 3 different values."),
        ("level", "qwk", "qwk needs classes with an order; write them as numbers in 'level'."),
        ("price", "accuracy", "accuracy needs classes, but the target 'price' has 199 different "
         "values in 200 rows."),
        ("Id", None, None),
    ],
)  # fmt: skip
def test_target_of_the_wrong_kind(bench, target, metric, line):
    data = people()
    if line is None:
        data["Id"] = [f"name {number}" for number in range(ROWS)]
        line = "the target 'Id' has 200 different texts in 200 rows: neither numbers nor classes."
    data.loc[0, "buys"] = "no"
    data.loc[0, "price"] = data.loc[1, "price"]
    assert len(data["price"].unique()) >= 190
    line = line.replace("199", str(data["price"].nunique())) if "'price' has" in line else line
    assert bench.refused(data, target, metric=metric) == line


def test_target_without_a_value(bench):
    said = bench.refused(people().assign(price=""))
    assert said == "train.csv: the target 'price' has no value in any row."


def test_constant_target(bench):
    said = bench.refused(people().assign(price=7))
    assert said == "the target 'price' is '7' in every row: nothing to predict."


def test_values_that_the_metric_does_not_take(bench):
    data = people()
    data.loc[2, "price"] = -4
    said = bench.refused(data, metric="rmsle")
    assert said == (
        "rmsle needs values ≥ 0, but the target 'price' has -4 and the like in 1 of 200 rows."
    )


def test_decimal_commas(bench):
    data = people().astype({"price": str})
    data["price"] = data["price"].str.replace(".", ",")
    said = bench.refused(written(bench.folder / "train.csv", data, sep=";"), metric="rmse")
    assert said.endswith("200 of 200 rows; write decimals with a point, thousands without a mark.")


def test_infinite_target(bench):
    data = people()
    data.loc[2, "price"] = np.inf
    said = bench.refused(data, metric="rmse")
    assert "the target 'price' has 'inf' and the like in 1 of 200 rows" in said


def test_class_that_is_too_rare(bench):
    data = people().assign(buys=["yes"] * 2 + ["no"] * (ROWS - 2))
    said = bench.refused(data, "buys")
    assert said == "the class 'yes' of 'buys' has 2 rows; at least 4 are needed to grade with auc."


def test_too_few_rows(bench):
    said = bench.refused(people(12))
    assert said == (
        "train.csv has 12 rows with a target; at least 20 are needed to train and to grade on."
    )


def test_nothing_but_a_target(bench):
    said = bench.refused(people()[["Id", "price"]])
    assert said == "there is no column beside the target 'price' to predict it from."


def test_many_small_classes_are_graded_in_both_parts(bench):
    data = people(60).assign(level=[f"kind {n // 3}" for n in range(60)])
    bench.load(data, "level", metric="accuracy")
    assert bench.answers["part"].value_counts().to_dict() == {"public": 10, "private": 10}


def test_spaces_around_column_names_are_no_part_of_them(bench):
    path = bench.text(people().rename(columns=lambda n: f" {n} ").to_csv(index=False))
    bench.load(path)
    assert bench.public("train").columns.tolist() == people().columns.tolist()


def test_rows_that_are_all_equal(bench):
    said = bench.refused(pd.DataFrame({"a": 1, "b": 2, "price": range(100)}))
    assert said == (
        "100 rows, 1 of them different beside the target, are too few to keep some to grade on."
    )


def test_target_called_like_the_part(bench):
    said = bench.refused(people().rename(columns={"price": "part"}), "part")
    assert said == "the target can not be called 'part'; rename it."


@pytest.mark.parametrize("share", [0.0, 0.9, -1.0, float("nan")])
def test_impossible_hold_out(bench, share):
    said = bench.refused(people(), holdout=share)
    assert said.startswith("the hold-out must be above 0 and below 0.9, not ")


# ------------------------------------------------------------------------------- unusable tests


def test_target_in_test(bench, tmp_path):
    said = bench.refused(people(), test=written(tmp_path / "test.csv", people(20)))
    assert said == (
        "test.csv has the target 'price' too; without it these rows can be predicted, or add them "
        "to the training rows."
    )


def test_empty_target_in_test_is_left_out_and_said(bench, tmp_path):
    test = people(20, first=800).assign(price="")
    bench.load(people(), test=written(tmp_path / "test.csv", test), metric="rmse")
    assert remarks_of(bench.built) == ["the empty column 'price' of test.csv was left out."]


def test_other_columns_in_test(bench, tmp_path):
    test = people(20).drop(columns="price").rename(columns={"age": "Age"})
    said = bench.refused(people(), test=written(tmp_path / "test.csv", test))
    assert said == (
        "test.csv does not have the training columns: it lacks 'age', and has 'Age' more."
    )


def test_columns_of_test_in_another_order(bench, tmp_path):
    test = people(20, first=800).drop(columns="price")
    path = written(tmp_path / "test.csv", test[test.columns[::-1]])
    bench.load(people(), test=path)
    row = bench.public("test").set_index("Id").loc["00800"]
    assert row["age"] == str(test["age"][0])


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("ID", "train.csv: unknown id column 'ID'; did you mean 'Id'?"),
        ("level", "train.csv: the id column 'level' has "),
        ("town", "train.csv: "),
    ],
)
def test_id_column_that_names_no_rows(bench, name, line):
    said = bench.refused(people(), id_column=name)
    assert said.startswith(line)


def test_folder_that_can_not_be_written(bench):
    bench.text("", "built")
    with pytest.raises(TaskError, match=r"the task can not be written to .*: Not a directory\."):
        bench.load(people())
