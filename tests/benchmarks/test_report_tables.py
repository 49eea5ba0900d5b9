"""What the tables of a report say, and the files and the terminal say the same."""

import io
import re
import shlex
from pathlib import Path

import msgspec
import pandas as pd
import pytest
from rich.console import Console

from mle_ideator.benchmarks.measures.values import Cell, Contender
from mle_ideator.benchmarks.reports.by_task import growth
from mle_ideator.benchmarks.reports.detail_tables import (
    absent_table,
    category_table,
    flag_table,
    task_table,
)
from mle_ideator.benchmarks.reports.files import (
    FIGURE_COLUMNS,
    RUN_COLUMNS,
    report_json,
    write_files,
)
from mle_ideator.benchmarks.reports.gathering import ResultsOf, command_of, gather, report_of
from mle_ideator.benchmarks.reports.naming import labels_of, short_names
from mle_ideator.benchmarks.reports.page import verdicts
from mle_ideator.benchmarks.reports.tables import comparison_table, paired_table, tables_of
from mle_ideator.benchmarks.reports.values import (
    Absent,
    Named,
    OfTask,
    OnTask,
    Report,
    ReportedRun,
    Source,
)
from mle_ideator.benchmarks.runner.plan import Plan
from mle_ideator.cli.report_view import PLAIN_WIDTH, report_console, show_report
from mle_ideator.errors import UsageError
from mle_ideator.types import Score, Scores
from tests.benchmarks.measured import run
from tests.benchmarks.reported import TASKS, flagged, matrix, plan, report, solved

APART = {"good": 0.8, "poor": 0.3, "worse": 0.1}


def column(table, name):
    place = [column.name for column in table.columns].index(name)
    return [row[place] for row in table.rows]


def row_of(table, contender):
    return next(row for row in table.rows if row[0].text.split(" †")[0] == contender)


def test_the_best_is_marked_where_the_test_tells_it_apart():
    table = comparison_table(report(matrix(APART)))
    marked = [row[0].text for row in table.rows if any(entry.best for entry in row)]
    assert marked == ["good"]
    assert [entry.text for entry in column(table, "Avg@k")] == ["80.5", "30.5", "10.5"]
    assert [entry.text for entry in column(table, "Best@k")] == ["81.0", "31.0", "11.0"]
    assert [entry.text for entry in column(table, "above median %")] == ["100.0", "0.0", "0.0"]


def test_nothing_is_marked_on_too_few_tasks():
    few = report(matrix(APART, TASKS[:3]))
    table = comparison_table(few)
    assert not any(entry.best for row in table.rows for entry in row)
    assert any("tells none apart" in note for note in table.notes)
    assert all("can not be told apart" in verdict for verdict in verdicts(few))


def test_one_contender_alone_is_never_the_best():
    table = comparison_table(report(matrix({"good": 0.8})))
    assert not any(entry.best for row in table.rows for entry in row)


def test_verdicts_name_the_better_one_first():
    assert verdicts(report(matrix({"good": 0.3, "poor": 0.8})))[0].startswith("poor is better")


def test_flagged_runs_are_marked_in_every_table_and_stay_in_every_figure():
    runs = matrix(APART)
    clean = report(runs)
    doubted = report([flagged(runs[0]), *runs[1:]])
    assert doubted.figures.contenders[0].figures == clean.figures.contenders[0].figures
    for table in tables_of(doubted):
        if table.key != "absent":
            names = [entry.text for row in table.rows for entry in row]
            assert any("†1" in name for name in [*names, *(c.name for c in table.columns)])
    (flag,) = flag_table(doubted).rows
    assert [entry.text for entry in flag[:5]] == ["task-a", "good †1", "0", "network", "7"]
    assert not flag_table(clean).rows


def test_what_failed_or_is_missing_is_counted_and_named():
    asked = plan(["task-a", "task-b"], ["good", "idle"], 2)
    runs = [
        solved("task-a", "good", 0, 0.8),
        run("task-a", "good", 1, outcome="failed", detail="the server is gone"),
        run("task-b", "good", 0, outcome=None),
    ]
    found = report(runs, asked)
    table = absent_table(found)
    said = {tuple(entry.text for entry in row) for row in table.rows}
    assert ("task-a", "good", "1", "failed", "the server is gone") in said
    assert ("task-b", "good", "0", "not ended", "") in said
    assert ("task-b", "good", "1", "missing", "") in said
    assert sum(row[1].text == "idle" for row in table.rows) == 4
    compared = comparison_table(found)
    assert row_of(compared, "good")[1].text == "3 of 4"
    assert row_of(compared, "idle")[1].text == "0 of 4"
    notes = "\n".join(compared.notes)
    assert "good: 1 missing, 1 failed, 1 not ended, 2 invalid in all" in notes
    assert "idle: 4 missing" in notes


def test_a_task_in_numbers():
    runs = [
        solved("task-a", "good", 0, 0.6),
        solved("task-a", "good", 1, 0.95),
        run("task-a", "good", 2),
    ]
    (task,) = report(runs).tasks
    (own,) = task.contenders
    assert (own.runs, own.valid, own.worst, own.best) == (3, 2, 0.6, 0.95)
    assert own.score == pytest.approx(0.775)
    assert own.human_rank == pytest.approx((0.6 + 0.95) / 3)
    assert own.medals == {"gold": 1, "silver": 0, "bronze": 0}
    assert (task.kind, task.baseline) == ("private", 0.1)
    (row,) = task_table(report(runs)).rows
    assert [entry.text for entry in row] == [
        *("task-a, auc ↑", "good", "0.775", "0.517", "1 gold", "2 of 3", "2.0"),
    ]
    steps = growth([one for one in runs if one.valid], "private")
    assert [point.at for point in steps] == list(range(2, 9))
    assert (steps[0].low, steps[0].high) == (0.3, 0.475)
    assert steps[-1].value == pytest.approx(0.775)


def test_where_lower_is_better_the_worst_is_the_highest():
    runs = [
        solved("t", "a", seed, 0.5, scores=Scores(private=Score(value, False)))
        for seed, value in enumerate((3.0, 1.0))
    ]
    own = report(runs).tasks[0].contenders[0]
    assert (own.worst, own.best) == (3.0, 1.0)


def test_idea_categories_are_counted_by_contender():
    table = category_table(report(matrix({"good": 0.8}, ["task-a"], 2)))
    said = {row[0].text: row[1] for row in table.rows}
    assert (said["ensembling"].text, said["ensembling"].interval) == ("2 · 50 %", "(100 %)")
    assert (said["training"].text, said["training"].interval) == ("2 · 50 %", "(0 %)")
    assert said["model choice"].text == "0"


def folder(name, runs):
    return ResultsOf(label=name, path=Path(name), plan=None, runs=runs)


def test_contenders_of_the_same_name_in_two_folders_are_told_apart():
    both = report_of(
        [folder("R", matrix({"good": 0.8})), folder("R2", matrix({"good": 0.3, "new": 0.9}))]
    )
    assert [named.name for named in both.contenders] == ["good [R2]", "good [R]", "new"]
    (apart, *_) = [c for c in both.figures.comparisons if "good" in c.second.ideator]
    assert apart.pairs == 16
    assert apart.difference.value == pytest.approx(-50)
    table = comparison_table(both)
    assert row_of(table, "good [R]")[2].text == "80.5"
    assert row_of(table, "good [R2]")[2].text == "30.5"


def test_labels_are_the_shortest_ends_that_differ():
    assert labels_of([("/", "a", "R"), ("/", "a", "R2")]) == ["R", "R2"]
    assert labels_of([("/", "a", "R"), ("/", "b", "R")]) == ["a/R", "b/R"]


def test_specs_with_paths_go_by_their_last_part_where_that_tells_them_apart():
    assert short_names(["fixed:/a/ideas.yaml", "https://h/v1", "null"]) == {
        "fixed:/a/ideas.yaml": "fixed:ideas.yaml",
        "https://h/v1": "https://h/v1",
        "null": "null",
    }
    both = ["mlebench:/data/leaf", "mlebench:/other/leaf"]
    assert short_names(both) == dict(zip(both, both, strict=True))
    assert short_names(["fixed:/a/i.yaml [x/R]", "null [x/R]"]) == {
        "fixed:/a/i.yaml [x/R]": "fixed:i.yaml [x/R]",
        "null [x/R]": "null [x/R]",
    }


def test_names_tell_the_implementer_where_there_are_two():
    one = solved("t", "good", 0, 0.5)
    other = msgspec.structs.replace(one, cell=Cell("t", Contender("good", "codeact:m"), 0))
    assert [c.name for c in report([one]).contenders] == ["good"]
    assert [c.name for c in report([one, other]).contenders] == [
        "good + codeact:m",
        "good + offline",
    ]


@pytest.mark.parametrize("make", [lambda p: [p, p / "."], lambda p: [p], lambda p: [p / "no"]])
def test_folders_that_can_not_be_reported_on_are_refused_in_a_line(tmp_path, make):
    with pytest.raises(UsageError) as refused:
        gather(make(tmp_path))
    assert "\n" not in str(refused.value)


def test_every_row_has_an_entry_for_every_column():
    odd = report([flagged(solved("t", "a", 0, 0.5)), run("t", "b", 0)], plan(["t"], "abc", 2))
    keys = [table.key for table in tables_of(odd)]
    assert keys == ["comparison", "paired", "tasks", "categories", "effort", "absent", "flags"]
    for table in tables_of(odd):
        assert {len(row) for row in table.rows} == {len(table.columns)}


def test_the_files_say_what_the_report_says(tmp_path):
    asked = plan(TASKS, [*APART, "@idle"], 2)
    found = report(matrix(APART), asked)
    write_files(found, tmp_path)
    assert msgspec.json.decode((tmp_path / "report.json").read_bytes(), type=Report) == found
    runs = pd.read_csv(tmp_path / "runs.csv")
    assert len(runs) == len(found.runs) + len(found.absent) == 64
    means = runs[runs.state == "done"].groupby("contender").private.mean()
    assert means["good"] == pytest.approx(0.805)
    assert set(runs[runs.state == "missing"].contender) == {"'@idle"}, (
        "no formula for a spreadsheet"
    )
    figures = pd.read_csv(tmp_path / "figures.csv")
    good = figures[(figures.contender == "good") & figures.category.isna()].set_index("figure")
    own = found.figures.contenders[1].figure("avg_at_k")
    assert good.loc["avg_at_k", ["value", "low", "high"]].tolist() == pytest.approx(
        [own.value, own.low, own.high]
    )
    shares = figures[(figures.contender == "good") & (figures.figure == "category_share")]
    assert shares.value.sum() == pytest.approx(100)


def test_the_same_runs_give_the_same_json():
    first, second = (report(matrix(APART)) for _ in range(2))
    same = msgspec.structs.replace(second, created_at=first.created_at)
    assert report_json(first) == report_json(same)


NAMES = ["openai:gpt-5", "https://ideas.example.org:8000/v1", "prompted:a very long name " * 4]


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_shows_every_table_within_its_width(width):
    wide = report([flagged(one) for one in matrix(dict.fromkeys(NAMES, 0.5), TASKS[:2])])
    out = io.StringIO()
    show_report(wide, Console(file=out, width=width, highlight=False))
    lines = out.getvalue().splitlines()[1:]
    assert max(map(len, lines)) <= width
    text = out.getvalue()
    for table in tables_of(wide):
        assert table.title in text
        for name in (column.name.split()[0] for column in table.columns):
            assert name[:8] in text


def test_where_there_is_no_terminal_the_report_is_plain(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    show_report(report(matrix(APART)), report_console())
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= PLAIN_WIDTH
    assert "80.5*" in text


def test_paired_differences_are_marked_where_significant():
    (row,) = paired_table(report(matrix({"good": 0.8, "poor": 0.3}))).rows
    assert row[2].best
    assert [entry.text for entry in row[:4]] == ["good", "poor", "50.0", "8 / 0 / 0"]


def test_the_command_asks_for_the_same_again():
    asked = Plan(
        version="0",
        suite="own",
        tasks=("a", "b c"),
        ideators=("null", "offline"),
        implementers=("offline",),
        seeds=(3, 5),
        config={"sandbox": "local", "limits": {"steps": 9}, "help_policy": "agent"},
    )
    words = shlex.split(command_of(asked, Path("out dir")))
    assert words[:3] == ["mle-ideator", "bench", "run"]
    options = list(zip(words[3::2], words[4::2], strict=True))
    assert [value for option, value in options if option == "--task"] == ["a", "b c"]
    assert [value for option, value in options if option == "--seed"] == ["3", "5"]
    assert [value for option, value in options if option == "--set"] == [
        'sandbox="local"',
        "limits.steps=9",
    ]
    assert options[-1] == ("--out", "out dir")


def test_the_docs_name_every_key_and_column():
    text = (Path(__file__).parents[2] / "docs" / "reports.md").read_text()
    kinds = (Report, Source, Named, ReportedRun, Absent, OfTask, OnTask)
    keys = [key for kind in kinds for key in kind.__struct_fields__]
    for name in [*keys, *RUN_COLUMNS, *FIGURE_COLUMNS]:
        assert re.search(rf"`{name}`", text), name
