"""Reference solutions: the ladder on every kind of task, its grades, and the leaderboards."""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mle_ideator.benchmarks.bundled import bundled_folders
from mle_ideator.benchmarks.cache import VARIABLE
from mle_ideator.benchmarks.declared.boards import LEADERBOARD, read_leaderboard
from mle_ideator.benchmarks.declared.spec import Spec, read_spec
from mle_ideator.benchmarks.references import Given, Reference, encoding, tabular
from mle_ideator.benchmarks.references.__main__ import main
from mle_ideator.benchmarks.references.computing import (
    REFERENCES,
    Scored,
    compute,
    given_of,
    references_of,
    scores_of,
    write_leaderboard,
)
from mle_ideator.benchmarks.references.models import Model, blended, boosting
from mle_ideator.benchmarks.references.values import RUNGS
from mle_ideator.errors import TaskError

BOARDS = {k: f for k, f in bundled_folders().items() if (f / LEADERBOARD).exists()}
OLD = ("airport-temperature", "cdnow-clv", "doctor-visits", "flight-time")
OLD += ("flights-late", "image-segments", "mnist5k", "surname-origin")

BUILD = """
import numpy as np
import pandas as pd
from mle_ideator.benchmarks.building import Frames

def build(root, rng):
    a, b = rng.normal(size=(2, 300)).round(4)
    day = pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 200, 300), unit="D")
    rows = pd.DataFrame({
        "a": a, "b": np.where(rng.random(300) < 0.1, np.nan, b),
        "colour": rng.choice(["red", "blue", "green"], 300), "day": day.strftime("%Y-%m-%d"),
    })
    signal = a + (rows["colour"] == "red") + rng.normal(0, 0.3, 300)
    TARGETS
    return Frames(rows.iloc[:200], rows.iloc[200:], {"notes": rows[["day"]].drop_duplicates()})
"""
QUICK = ("weak/constant mean or prior", "weak/linear 10", "weak/neighbours 5", "weak/tree depth 4")
QUICK += ("weak/boosting 10 rounds", "weak/forest 10 depth 4", "weak/linear 1 of numbers")

KINDS = {
    "rmse": ("value", [], "rows['y'] = signal.round(3)"),
    "mae": ("value", [], "rows['y'] = signal.round(3)"),
    "rmsle": ("value", [], "rows['y'] = np.exp(signal).round(3)"),
    "poisson_deviance": ("value", [], "rows['y'] = rng.poisson(np.exp(signal))"),
    "pinball_90": ("value", [], "rows['y'] = signal.round(3)"),
    "accuracy": ("label", ["lo", "mid", "hi"],
                 "rows['y'] = np.array(['lo', 'mid', 'hi'])[np.searchsorted([0, 1], signal)]"),
    "macro_f1": ("label", ["NA", "hi"], "rows['y'] = np.where(signal > 1, 'hi', 'NA')"),
    "qwk": ("label", ["0", "1", "2", "3"], "rows['y'] = np.searchsorted([-1, 0, 1], signal)"),
    "auc": ("probability", ["0", "1"], "rows['y'] = (signal > 1).astype(int)"),
    "log_loss": ("probability", ["x", "y", "z"],
                 "rows['y'] = np.array(['x', 'y', 'z'])[np.searchsorted([0, 1], signal)]"),
}  # fmt: skip


def make_task(folder: Path, metric: str, targets: tuple[str, ...] = ("y",)) -> Path:
    prediction, classes, lines = KINDS.get(metric, ("probability", [], ""))
    if len(targets) > 1:
        lines = "rows['p'] = (signal > 0).astype(int); rows['q'] = (signal < 1).astype(int)"
    folder.mkdir(parents=True)
    higher = metric in ("accuracy", "macro_f1", "qwk", "auc", "lrap")
    (folder / "task.yaml").write_text(
        f"title: T\ntype: t\nsplit: test\nmetric: {metric}\nhigher_is_better: {higher}\n"
        f"prediction: {prediction}\ntargets: [{', '.join(targets)}]\nrows: [200, 100]\n"
        f"origin: made up\nlicence: none\nclasses: {classes}\n".replace("True", "true")
    )
    (folder / "description.md").write_text("# T\n")
    (folder / "build.py").write_text(BUILD.replace("TARGETS", lines))
    (folder / REFERENCES).write_text(
        textwrap.dedent("""
            from mle_ideator.benchmarks.references.encoding import as_given
            from mle_ideator.benchmarks.references.tabular import ladder

            def references():
                return ladder(as_given, as_given)
        """)
    )
    return folder


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))


@pytest.mark.parametrize("metric", KINDS)
def test_ladder_learns_what_the_metric_asks(tmp_path, metric):
    folder = make_task(tmp_path / "task", metric)
    scored = {one.name: one for one in compute(folder, QUICK)}
    assert list(scored) == [
        name for name in (r.name for r in references_of(folder)) if name in QUICK
    ]
    baseline = scored["weak/constant mean or prior"].private
    better = (lambda a, b: a > b) if read_spec(folder).higher_is_better else (lambda a, b: a < b)
    assert better(scored["weak/boosting 10 rounds"].private, baseline)
    assert better(scored["weak/forest 10 depth 4"].private, baseline)
    assert better(scored["weak/linear 10"].public, scored["weak/constant mean or prior"].public)


def test_many_targets_get_a_model_each(tmp_path):
    folder = make_task(tmp_path / "task", "lrap", ("p", "q"))
    names = ("weak/constant mean or prior", "weak/linear 10")
    constant, linear = compute(folder, names)
    assert linear.private > constant.private


def test_scores_are_the_same_again_and_in_another_process(tmp_path, capsys):
    folder = make_task(tmp_path / "task", "rmse")
    name = "weak/forest 10 depth 4"
    (first,), (second,) = compute(folder, [name]), compute(folder, [name])
    assert (first.public, first.private) == (second.public, second.private)
    assert main([str(folder), "--only", name]) == 0
    assert f"{first.private:.6g}" in capsys.readouterr().out


def test_ladder_climbs_and_has_enough_entries():
    found = list(tabular.ladder(encoding.as_given, encoding.as_given))
    by_rung = {rung: sum(one.rung == rung for one in found) for rung in RUNGS}
    assert by_rung == {"weak": 64, "boosting": 20, "features": 11, "full": 11}
    assert len({one.name for one in found}) == len(found)
    assert all(one.name.startswith(f"{one.rung}/") for one in found)


def test_blend_is_the_mean_of_its_members(tmp_path):
    folder = make_task(tmp_path / "task", "rmse")
    given, _ = given_of(folder)
    one, two = (r for r in references_of(folder) if r.name in QUICK[1:3])
    members = [r.predict(given)["y"] for r in (one, two)]
    models = [r.predict.args[0] for r in (one, two)]
    (blend,) = tabular.rung("full", [blended("both", *models)], encoding.as_given)
    assert blend.name == "full/blend of both"
    np.testing.assert_allclose(blend.predict(given)["y"], np.mean(members, axis=0))


def test_tuning_ranks_on_training_rows_kept_aside(tmp_path):
    """The order of the candidates is found again, and the test rows are not asked."""
    folder = make_task(tmp_path / "task", "rmse")
    given, _ = given_of(folder)
    none, good = (Model(f"b {n}", boosting(n), suited=True) for n in (1, 40))
    both = [Model(f"at {p}", best_of=(none, good), places=(p,)) for p in (0, 1)]
    first, second, plain = tabular.rung("full", [*both, good], encoding.as_given)
    np.testing.assert_array_equal(first.predict(given)["y"], plain.predict(given)["y"])
    assert np.std(second.predict(given)["y"]) < np.std(first.predict(given)["y"])


# ------------------------------------------------------------------- what they are given


def test_given_holds_what_agents_see(tmp_path):
    given, _ = given_of(make_task(tmp_path / "task", "macro_f1"))
    assert list(given.train.columns) == ["id", "a", "b", "colour", "day", "y"]
    assert given.features == ["a", "b", "colour", "day"]
    assert set(given.y) == {"NA", "hi"}  # a class called NA is no blank
    assert list(given.tables) == ["notes"]
    assert given.train["b"].isna().any()


def frames() -> encoding.Pair:
    train = pd.DataFrame(
        {
            "n": [1.0, np.nan, 3.0],
            "word": ["a", "b", "a"],
            "day": ["2024-01-01", "2024-02-01", "2024-03-01"],
            "same": [1, 1, 1],
        }
    )
    return train, train.assign(word=["b", "new", None])


def test_codes_keep_numbers_and_order_categories_by_frequency():
    train, test = encoding.codes(frames())
    assert list(train["word"]) == [0, 1, 0]
    assert test["word"].isna().tolist() == [False, True, True]
    assert "same" not in train
    assert list(train["day weekday"]) == [0, 3, 4]
    assert train["n"].isna().sum() == 1


def test_dense_has_no_blanks_and_knows_where_they_were():
    train, test = encoding.dense(frames())
    assert np.isfinite(train.to_numpy()).all()
    assert np.isfinite(test.to_numpy()).all()
    assert list(train.columns) == list(test.columns)
    assert {"n blank", "word=a", "word=b"} <= set(train.columns)


def test_means_by_group_never_hold_the_own_target():
    rng = np.random.default_rng(0)
    train = pd.DataFrame(
        {"id": range(300), "who": rng.integers(0, 150, 300), "y": rng.normal(size=300)}
    )
    given = Given(spec_of("y"), train, pd.DataFrame({"id": [300, 301], "who": [3, 999]}), train)
    inside, outside = encoding.means_by(given, ["who"], weight=1.0)
    assert np.corrcoef(inside, train["y"])[0, 1] < 0.1  # with the own target it is about .7
    own = train[train["who"] == 3]["y"]
    assert outside[0] == pytest.approx((own.sum() + train["y"].mean()) / (len(own) + 1))
    assert outside[1] == pytest.approx(train["y"].mean())


def spec_of(target: str) -> Spec:
    return Spec(
        title="T", type="t", split="test", metric="rmse", higher_is_better=False,
        prediction="value", targets=(target,), rows=(300, 2), origin="made up", licence="none",
    )  # fmt: skip


# ------------------------------------------------------------------------------- refusals


def test_own_references_may_answer_as_array_frame_or_columns(tmp_path):
    folder = make_task(tmp_path / "task", "log_loss")
    given, grader = given_of(folder)
    third = np.full((len(given.test), 3), 1 / 3)
    answers = (
        third,
        given.sample.assign(x=1 / 3, y=1 / 3, z=1 / 3),
        dict.fromkeys("xyz", third[:, 0]),
    )
    made = [Reference(f"weak/{n}", "weak", lambda _, a=a: a) for n, a in enumerate(answers)]
    scores = [one.private for one in scores_of(made, given, grader)]
    assert scores == pytest.approx([np.log(3)] * 3)


def test_refused_submission_names_its_reference(tmp_path):
    given, grader = given_of(make_task(tmp_path / "task", "rmse"))
    wrong = Reference("weak/nothing", "weak", lambda g: np.full(len(g.test), np.nan))
    with pytest.raises(TaskError, match=r"'weak/nothing': 100 predictions are empty or NaN"):
        list(scores_of([wrong], given, grader))


def test_unknown_reference_is_told_with_the_nearest(tmp_path, capsys):
    folder = make_task(tmp_path / "task", "rmse")
    assert main([str(folder), "--only", "weak/linear 1O"]) == 2
    assert "did you mean 'weak/linear 1" in capsys.readouterr().err


def test_references_must_have_names_of_their_own(tmp_path):
    folder = make_task(tmp_path / "task", "rmse")
    file = folder / REFERENCES
    file.write_text(file.read_text().replace("return ladder(", "return 2 * list(ladder(") + ")")
    with pytest.raises(
        TaskError, match="more than one reference 'boosting/blend of 2 boosting and forest'"
    ):
        references_of(folder)
    file.write_text("x = 1\n")
    with pytest.raises(TaskError, match="has no function references"):
        references_of(folder)
    file.unlink()
    with pytest.raises(TaskError, match="does not exist"):
        references_of(folder)


def test_write_needs_all_of_them(tmp_path):
    with pytest.raises(SystemExit):
        main(["image-segments", "--write", "--only", "weak/linear 10"])


def test_leaderboard_is_written_best_first(tmp_path):
    folder = make_task(tmp_path / "task", "auc")
    scored = [
        Scored(n, "weak", 0.5, s, 0.0) for n, s in (("b", 0.7), ("c", 0.912345678), ("a", 0.7))
    ]
    write_leaderboard(folder, scored)
    lines = (folder / LEADERBOARD).read_text().splitlines()
    assert lines == ["reference,public,private", "c,0.5,0.9123457", "a,0.5,0.7", "b,0.5,0.7"]
    assert read_leaderboard(folder).scores == (0.9123457, 0.7, 0.7)


# ------------------------------------------------------------------------------ bundled


@pytest.mark.parametrize("task_id", BOARDS)
def test_board_is_that_of_the_references_and_has_enough_of_them(task_id):
    folder = BOARDS[task_id]
    rows = pd.read_csv(folder / LEADERBOARD)
    references = references_of(folder)
    assert set(rows["reference"]) == {one.name for one in references}
    assert len(rows) >= 100
    assert rows["private"].is_monotonic_increasing or rows["private"].is_monotonic_decreasing
    assert {one.rung for one in references} == set(RUNGS)


@pytest.mark.parametrize("task_id", OLD)
def test_medals_are_laddered(task_id):
    board = read_leaderboard(BOARDS[task_id])
    rungs = {one.name: one.rung for one in references_of(BOARDS[task_id])}
    rows = pd.read_csv(BOARDS[task_id] / LEADERBOARD)
    first = [rungs[name] for name in rows["reference"][:10]]
    assert first.count("weak") == 0
    assert first.count("full") >= 5
    assert board.threshold("gold") != board.threshold("bronze")


@pytest.mark.parametrize("task_id", ["image-segments", "doctor-visits"])
def test_scores_of_the_board_come_again(task_id):
    rows = pd.read_csv(BOARDS[task_id] / LEADERBOARD, index_col="reference")
    names = ["weak/linear 10", "weak/tree depth 4", "features/linear"]
    for one in compute(BOARDS[task_id], names):
        assert one.private == pytest.approx(rows.loc[one.name, "private"], rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("task_id", BOARDS)
def test_a_reference_of_each_rung_comes_again(task_id):
    rows = pd.read_csv(BOARDS[task_id] / LEADERBOARD, index_col="reference")
    firsts = {one.rung: one.name for one in reversed(references_of(BOARDS[task_id]))}
    for one in compute(BOARDS[task_id], list(firsts.values())):
        assert one.private == pytest.approx(rows.loc[one.name, "private"], rel=5e-3)
