"""What the prompts claim of libraries is so, and their worked example works."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest

from mle_ideator.actions import read_action
from mle_ideator.messages import Completion
from mle_ideator.prompts import render
from mle_ideator.types import Execute, HelpRequest, SeekHelp


def test_the_worked_example_is_read_and_runs(tmp_path):
    prompt = render("codeact/system", tools=False)
    example = prompt.partition("# Example")[2]
    shown, _, later = example.partition("What comes back:")
    script = read_action(Completion(text=shown, finish_reason="stop")).action
    assert isinstance(script, Execute)
    asked = read_action(Completion(text=later, finish_reason="stop")).action
    assert isinstance(asked, SeekHelp)
    assert all(getattr(asked.request, part) for part in HelpRequest.__struct_fields__)
    random = np.random.default_rng(0)
    table = pd.DataFrame(random.uniform(20, 100, (60, 3)), columns=["area", "rooms", "age"])
    (tmp_path / "input").mkdir()
    test = table.assign(id=range(60))
    test.to_csv(tmp_path / "input/test.csv", index=False)
    test.assign(price=table["area"] * 1000).to_csv(tmp_path / "input/train.csv", index=False)
    python = f'python() {{ {sys.executable} -W error "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-c", python + script.code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stderr == ""
    assert done.stdout.startswith("Validation score: 0.")
    assert len(pd.read_csv(tmp_path / "submission.csv")) == 60


def test_both_forms_show_the_same_example():
    tags, tools = (render("codeact/system", tools=form) for form in (False, True))
    script = tags.partition("<execute_bash>\ncat")[2].partition("</execute_bash>")[0]
    assert script in tools
    assert "<execute_bash>" not in tools
    assert len(tags) < 8000


new_pandas = pytest.mark.skipif(int(pd.__version__[0]) < 3, reason="it tells of pandas 3")


@new_pandas
def test_what_is_said_of_pandas_3_is_so():
    table = pd.DataFrame({"a": [1, 2], "s": ["x", None], "g": [1, 2]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table["a"][table["a"] > 0] = 9
        table["s"].fillna("z", inplace=True)
    assert table["a"].tolist() == [1, 2]
    assert table["s"].isna().sum() == 1
    assert table["s"].dtype != object
    with pytest.raises(TypeError):
        np.issubdtype(table["s"].dtype, np.number)
    assert not pd.api.types.is_numeric_dtype(table["s"])
    assert list(table.select_dtypes(include=["str", "object"])) == ["s"]
    with pytest.raises(ValueError, match="read-only"):
        table["a"].values[0] = 1
    table["a"].to_numpy(copy=True)[0] = 1
    with pytest.raises(TypeError):
        table.loc[0, "a"] = 1.5
    dates = pd.to_datetime(pd.Series(["2020-01-01"]))
    assert dates.dtype == "datetime64[us]"
    assert dates.astype("int64")[0] == 1577836800 * 10**6
    for name in ("applymap", "append"):
        assert not hasattr(table, name)
    for gone in (
        lambda: table.fillna(method="ffill"),
        lambda: table.groupby("g", axis=1),
        lambda: pd.read_csv("x", delim_whitespace=True),
        lambda: pd.to_datetime(["2020"], infer_datetime_format=True),
    ):
        with pytest.raises(TypeError):
            gone()
    for old, new in (("M", "ME"), ("H", "h"), ("T", "min")):
        with pytest.raises(ValueError):
            pd.date_range("2020", periods=2, freq=old)
        pd.date_range("2020", periods=2, freq=new)
    assert table.groupby("g").apply(lambda part: list(part)).tolist() == [["a", "s"]] * 2
    with pytest.raises(KeyError):
        pd.Series([1], index=["k"])[0]


def test_what_is_said_of_numpy_and_scikit_learn_is_so():
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import mean_squared_error, root_mean_squared_error
    from sklearn.preprocessing import OneHotEncoder

    assert not any(hasattr(np, name) for name in ("float_", "NaN", "Inf"))
    assert hasattr(np, "trapezoid")
    assert root_mean_squared_error([1], [2]) == 1
    with pytest.raises(TypeError):
        mean_squared_error([1], [1], squared=False)
    with pytest.raises(TypeError):
        OneHotEncoder(sparse=False)
    OneHotEncoder(sparse_output=False)
    if "multi_class" in LogisticRegression().get_params():
        pytest.skip("this scikit-learn still has it")
