"""`task check` finds planted faults, and nothing in a task that is well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from mle_ideator.benchmarks.building import ANSWERS, PART, PRIVATE
from mle_ideator.benchmarks.bundled import bundled_folders
from mle_ideator.benchmarks.cache import VARIABLE
from mle_ideator.benchmarks.declared.assembling import build, load
from mle_ideator.benchmarks.declared.boards import LEADERBOARD
from mle_ideator.benchmarks.declared.checking import check_task
from mle_ideator.benchmarks.declared.findings import Finding
from mle_ideator.benchmarks.declared.ladders import check_references
from mle_ideator.benchmarks.declared.leaks import (
    Files,
    both_parts_scored,
    explained,
    leaks_in,
    read_files,
)
from mle_ideator.benchmarks.declared.spec import read_spec
from mle_ideator.benchmarks.declared.starting import new_task
from mle_ideator.benchmarks.references.computing import compute, write_leaderboard
from mle_ideator.cli.task import task as cli

REFERENCES = """
import numpy as np
from mle_ideator.benchmarks.references import Reference

def references():
    for rung, share in (("weak", 0.0), ("boosting", 0.3), ("features", 0.6), ("full", 0.9)):
        for number in range(26):
            part = share + number / 1000
            yield Reference(f"{rung}/{number}", rung, lambda given, part=part: price(given, part))

def price(given, share):
    size = given.test["length"] * given.test["width"] * given.test["height"] / 5000
    guess = 4 + size.clip(lower=given.test["kilos"]) * 1.4
    return share * guess + (1 - share) * given.y.mean()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A task that is well; it has no references."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    made = tmp_path / "parcels"
    new_task(made)
    return made


@pytest.fixture
def files(folder: Path, tmp_path: Path) -> Files:
    made = tmp_path / "made"
    made.mkdir()
    build(read_spec(folder), folder, made)
    return read_files(made, read_spec(folder))


def verdicts(folder: Path, whole: bool = False) -> dict[str, Finding]:
    return {finding.check: finding for finding in check_task(folder, whole)}


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def change_data(folder: Path, how: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    file = folder / "data.csv"
    how(pd.read_csv(file)).to_csv(file, index=False)


def data_findings(folder: Path, tmp_path: Path) -> dict[str, Finding]:
    """The checks of the files alone."""
    made = tmp_path / "made"
    made.mkdir()
    spec = read_spec(folder)
    build(spec, folder, made)
    return {finding.check: finding for finding in leaks_in(read_files(made, spec))}


def test_well_made_task_has_one_warning(folder):
    found = verdicts(folder)
    assert [f.check for f in found.values() if f.verdict != "ok"] == ["leaderboard"]
    assert found["leaderboard"].verdict == "warning"
    assert list(found)[:3] == ["declaration", "source", "licence"]
    assert {"same again", "overlap", "order", "single columns", "hidden answers"} <= set(found)


# ---------------------------------------------------------------------- what is declared


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("higher_is_better: false", "higher_is_better: true", "the wrong way round"),
        ("metric: rmse", "metric: RMSE", "is called 'rmse'"),
        ("metric: rmse", "metric: acuracy", "did you mean 'accuracy'"),
        ("prediction: value", "prediction: label", "rmse scores a value, not a label"),
        ("title:", "titel:", "declares no task"),
    ],
)
def test_wrong_declaration_ends_the_check(folder, old, new, says):
    change(folder / "task.yaml", old, new)
    found = verdicts(folder)
    assert found["declaration"].verdict == "failed"
    assert says in found["declaration"].message
    assert "build" not in found
    assert "overlap" not in found


def test_licence_must_be_said(folder):
    change(folder / "task.yaml", '"CC0-1.0: made up"', '"TODO"')
    change(folder / "task.yaml", "rows: [480, 120]", "rows: [500, 100]")
    change(folder / "description.md", "- `kilos`", "- weight in `kg`")
    change(folder / "task.yaml", "sha256: ", "sha256: 00")
    found = verdicts(folder)
    assert found["licence"].verdict == "warning"
    assert found["rows"].verdict == "failed"
    assert "480 / 120" in found["rows"].message
    assert found["description"].message == "description.md does not name `kilos`"
    assert found["pinned"].verdict == "failed"


def test_families_of_columns_are_named_by_their_ends(folder):
    change(
        folder / "build.py",
        "    return",
        "    for n in range(9): rows[f'p{n}'] = rows['kilos']\n    return",
    )
    change(folder / "description.md", "- `kilos`", "- `p0` … `p8`: pixels\n- `kilos`")
    assert verdicts(folder)["description"].verdict == "ok"


# --------------------------------------------------------------------------- how it is built


@pytest.mark.parametrize(
    "fault",
    [
        "    rows['luck'] = np.random.default_rng().random(len(rows)).round(5)\n",
        "    rows['first'] = list({str(n) for n in range(900)})[: len(rows)]\n",
    ],
)
def test_builds_that_differ_are_found(folder, fault):
    change(folder / "build.py", "    return", f"{fault}    return")
    found = verdicts(folder)["same again"]
    assert found.verdict == "failed"
    assert "two builds differ" in found.message


def test_build_that_breaks_is_a_finding(folder):
    change(folder / "build.py", "    return", "    rows['no such column']\n    return")
    found = verdicts(folder)
    assert found["build"].verdict == "failed"
    assert found["build"].message == "it can not be built: KeyError: 'no such column'"
    (folder / "build.py").unlink()
    assert "build.py does not exist" in verdicts(folder)["build"].message


# ------------------------------------------------------------------------------- leaks


def test_duplicates_across_the_files(folder, tmp_path):
    change_data(folder, lambda rows: pd.concat([rows, rows.head(40)]))
    found = data_findings(folder, tmp_path)["overlap"]
    assert found.verdict == "failed"
    assert "have the features of a training row" in found.message


def test_shared_ids(files):
    test = files.test.assign(id=files.train["id"].head(len(files.test)).to_numpy())
    found = {f.check: f for f in leaks_in(replace(files, test=test))}
    assert "share 120 ids" in found["overlap"].message


def test_number_that_ranks_the_target(folder, tmp_path):
    """As a customer's number that was given after sorting."""
    change_data(folder, lambda rows: rows.assign(parcel=rows["price"].rank(method="first") + 1000))
    found = data_findings(folder, tmp_path)["single columns"]
    assert found.verdict == "failed"
    assert "'parcel' alone" in found.message


def test_column_that_gives_the_answers_in_test_rows_only(files):
    leaked = files.answers["price"].astype(float) * 3 + 1
    test = files.test.assign(kilos=leaked.astype(str))
    found = {f.check: f for f in leaks_in(replace(files, test=test))}
    assert found["single columns"].verdict == "failed"
    assert "'kilos'" in found["single columns"].message


def sorted_by_target(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.iloc[rows["price"].astype(float).argsort()].reset_index(drop=True)


def test_rows_sorted_by_the_target(files):
    for name in ("train", "answers"):
        rows = sorted_by_target(getattr(files, name))
        found = {f.check: f for f in leaks_in(replace(files, **{name: rows}))}
        assert found["order"].verdict == "failed"
        assert "are sorted by the target" in found["order"].message


def test_rows_in_runs_of_like_targets(files):
    rows = sorted_by_target(files.train)
    rng = np.random.default_rng(0)
    runs = [rows.iloc[start : start + 8] for start in rng.permutation(range(0, len(rows), 8))]
    found = {f.check: f for f in leaks_in(replace(files, train=pd.concat(runs)))}
    assert "follow each other are alike" in found["order"].message


def test_ids_that_tell(files):
    order = files.train["price"].astype(float).rank(method="first").astype(int)
    shuffled = files.train.assign(id=order.astype(str))
    found = {f.check: f for f in leaks_in(replace(files, train=shuffled))}
    assert "the ids in train.csv tell the target" in found["order"].message


def test_ids_that_tell_by_their_remainder(files):
    dear = files.train["price"].astype(float) > files.train["price"].astype(float).median()
    places = pd.Series(np.random.default_rng(0).permutation(len(dear)))
    ids = places * 10 + np.where(dear, 3, 7)
    found = {
        f.check: f for f in leaks_in(replace(files, train=files.train.assign(id=ids.astype(str))))
    }
    assert "the ids in train.csv tell" in found["order"].message


def test_sample_with_answers(files):
    sample = files.sample.assign(price=files.answers["price"])
    found = {f.check: f for f in leaks_in(replace(files, sample=sample))}
    assert found["hidden answers"].verdict == "failed"
    assert "vary by row" in found["hidden answers"].message


def test_target_left_in_test(files):
    test = files.test.assign(price=files.answers["price"])
    found = {f.check: f for f in leaks_in(replace(files, test=test))}
    assert "test.csv has the column 'price'" in found["hidden answers"].message


def test_side_table_with_answers(files):
    table = files.answers[["id"]].assign(fee=files.answers["price"].astype(float) * 2 + 1)
    table = table.sample(frac=1, random_state=0).astype(str)
    found = {f.check: f for f in leaks_in(replace(files, tables={"fees.csv": table}))}
    assert found["hidden answers"].verdict == "failed"
    assert "fees.csv holds answers: its column 'fee'" in found["hidden answers"].message
    named = table.rename(columns={"fee": "price"})
    found = {f.check: f for f in leaks_in(replace(files, tables={"fees.csv": named}))}
    assert "fees.csv has the column 'price'" in found["hidden answers"].message


def test_side_table_in_the_order_of_the_target(files):
    table = sorted_by_target(files.train)[["id"]].assign(note="x")
    found = {f.check: f for f in leaks_in(replace(files, tables={"notes.csv": table}))}
    assert "rows of notes.csv are sorted by the target" in found["order"].message
    by_key = table.sort_values("id", key=lambda ids: ids.astype(int))
    found = {f.check: f for f in leaks_in(replace(files, tables={"notes.csv": by_key}))}
    assert found["order"].verdict == "ok"


def test_side_table_that_is_well(files):
    ids = pd.concat([files.train["id"], files.test["id"]]).sample(frac=1, random_state=1)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"id": ids, "note": rng.normal(size=len(ids)).round(3).astype(str)})
    found = list(leaks_in(replace(files, tables={"notes.csv": table})))
    assert {f.verdict for f in found} == {"ok"}


def test_part_without_rows(files):
    alone = files.answers.assign(**{PART: "public"})
    assert both_parts_scored(files) == ""
    assert "private part has 0%" in both_parts_scored(replace(files, answers=alone))


def test_chance_is_no_leak():
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert explained(rng.normal(size=(500, 6)), rng.normal(size=(500, 1))) < 0.02


# ------------------------------------------------------------------------- leaderboards


@pytest.fixture
def laddered(folder: Path) -> Path:
    """With references and their leaderboard."""
    (folder / "references.py").write_text(REFERENCES)
    write_leaderboard(folder, list(compute(folder)))
    return folder


def of_board(folder: Path, whole: bool = False) -> dict[str, Finding]:
    made = Path(load(folder)[0].inputs).parent
    return {f.check: f for f in check_references(folder, read_spec(folder), made, whole)}


def test_board_that_is_well(laddered):
    found = verdicts(laddered, whole=True)
    assert {f.verdict for f in found.values()} == {"ok"}
    assert found["references"].message == "104 of 104 references score as the leaderboard says"


def test_board_that_is_not_of_these_references(laddered):
    change(laddered / "references.py", "+ number / 1000", "+ number / 500")
    assert of_board(laddered)["references"].verdict == "ok"  # the first of each rung are the same
    found = of_board(laddered, whole=True)["references"]
    assert found.verdict == "failed"
    assert "do not score as the leaderboard says" in found.message
    change(laddered / "references.py", "range(26)", "range(27)")
    assert "compute it again" in of_board(laddered)["ladder"].message


def test_board_out_of_order(laddered):
    file = laddered / LEADERBOARD
    first, *rest = file.read_text().splitlines()
    file.write_text("\n".join([first, *reversed(rest)]) + "\n")
    assert "not sorted" in of_board(laddered)["leaderboard"].message
    file.write_text("nonsense\n1\n")
    assert of_board(laddered)["leaderboard"].verdict == "failed"


def test_board_that_is_short_and_flat(laddered):
    change(laddered / "references.py", "range(26)", "range(5)")
    change(laddered / "references.py", '("full", 0.9)', '("full", 0.1)')
    write_leaderboard(laddered, list(compute(laddered)))
    found = of_board(laddered)
    assert found["leaderboard"].message == "20 references are few: have 100 or more"
    assert "a higher rung is no better" in found["ladder"].message


def test_references_that_break_are_a_finding(laddered):
    change(
        laddered / "references.py",
        "def price(given, share):",
        "def price(given, share):\n    1 / 0",
    )
    assert of_board(laddered)["references"].message == "ZeroDivisionError: division by zero"
    (laddered / "references.py").unlink()
    assert of_board(laddered)["references"].verdict == "warning"


# --------------------------------------------------------------------------- from outside


def test_truth_that_does_not_win_is_found(folder, monkeypatch):
    """Answers that belong to other rows score like anybody's guess."""
    from mle_ideator.benchmarks.declared import leaks

    def mixed(made: Path, spec: object) -> Files:
        files = read_files(made, spec)
        assert (made / PRIVATE / ANSWERS).is_file()
        prices = files.answers["price"].sample(frac=1, random_state=0).to_numpy()
        return replace(files, answers=files.answers.assign(price=prices))

    monkeypatch.setattr(leaks, "read_files", mixed)
    found = verdicts(folder)["truth"]
    assert found.verdict == "failed"
    assert "no better than a constant" in found.message


def test_exit_code_and_json(folder):
    ran = CliRunner().invoke(cli, ["check", str(folder)])
    assert ran.exit_code == 0
    assert "ok       overlap" in ran.stdout
    change(folder / "task.yaml", "prediction: value", "prediction: label")
    ran = CliRunner().invoke(cli, ["check", str(folder), "--json"])
    assert ran.exit_code == 1
    found = msgspec.json.decode(ran.stdout, type=list[Finding])
    wrong = Finding("declaration", "failed", "rmse scores a value, not a label")
    assert found[0] == wrong


@pytest.mark.slow
@pytest.mark.parametrize("task_id", bundled_folders())
def test_every_bundled_task_is_well(tmp_path, monkeypatch, task_id):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    found = verdicts(bundled_folders()[task_id])
    assert [f for f in found.values() if f.verdict == "failed"] == []
