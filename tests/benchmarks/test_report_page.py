"""The page of a report: whole, harmless, without anything from elsewhere; and its plots."""

import re
import sys
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from mle_ideator.benchmarks.measures.values import Cell, Contender
from mle_ideator.benchmarks.reports.drawing.charts import _apart
from mle_ideator.benchmarks.reports.drawing.svg import write_plot
from mle_ideator.benchmarks.reports.drawing.theme import LIGHT, looks_of
from mle_ideator.benchmarks.reports.make import make_report
from mle_ideator.benchmarks.reports.page import link, pages_folder, write_page
from mle_ideator.benchmarks.reports.plots import plots_of, write_plots
from mle_ideator.benchmarks.reports.run_pages import cut, diff_of
from mle_ideator.benchmarks.reports.tables import comparison_table
from mle_ideator.errors import UsageError
from tests.benchmarks.reported import (
    FLAG,
    Page,
    assert_self_contained,
    flagged,
    matrix,
    plan,
    report,
    solved,
)

HOSTILE = "</script><script>alert(1)</script>\x1b[31m\u202egpj.exe \U000e0041 $x^2$ 模型"
APART = {"good": 0.8, "poor": 0.3}


@pytest.fixture
def page_file(tmp_path) -> Path:
    return tmp_path / "report.html"


def page_of(found, file: Path) -> Page:
    write_page(found, file, links=True)
    return Page(file)


def test_the_page_needs_nothing_but_itself(page_file):
    asked = plan(["t", "u"], [*APART, "idle"], 2)
    runs = matrix(APART, ["t", "u"])
    page = page_of(report([flagged(runs[0]), *runs[1:]], asked), page_file)
    assert_self_contained(page)
    (policy,) = [value for value in page.values("content") if "default-src" in value]
    assert "default-src 'none'" in policy
    assert page.tags["h1"] == 1
    assert (
        len(re.findall(r'role="img" aria-label="[^"]{20,}"', page_file.read_text()))
        == (page.tags["svg"])
    )


def test_the_page_says_what_the_tables_say(page_file):
    found = report(matrix(APART))
    page = page_of(found, page_file)
    said = " ".join(page.text.split())
    for row in comparison_table(found).rows:
        for entry in row:
            assert entry.text in said
            assert entry.interval in said
    assert "good is better than poor by 50.0 points" in said
    for name, definition in found.definitions.items():
        assert f"{name} {definition}" in said.replace(f"{name}{definition}", f"{name} {definition}")


def test_names_in_plots_are_text(page_file):
    page_of(report(matrix(APART, ["t"])), page_file)
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", page_file.read_text())
    assert texts.count("good") >= 7
    assert "ensembling" in texts


def test_hostile_names_and_texts_are_shown_and_do_nothing(page_file):
    one = solved("a", "b", 0, 0.5)
    evil = msgspec.structs.replace(
        one,
        cell=Cell(HOSTILE, Contender(HOSTILE, "offline"), 0),
        title=HOSTILE,
        detail=HOSTILE,
        outcome="failed",
        flags=(msgspec.structs.replace(FLAG, message=HOSTILE * 50),),
    )
    page = page_of(report([one, evil], plan([HOSTILE], [HOSTILE], 2)), page_file)
    assert_self_contained(page)
    assert "alert(1)" in page.text
    raw = page_file.read_text()
    for code in ("\x1b", "\u202e", "\U000e0041"):
        assert code not in raw


@pytest.mark.parametrize("runs", [[], [solved("t", "a", 0, 0.5)]])
def test_a_report_of_almost_nothing_has_a_page(runs, page_file):
    assert_self_contained(page_of(report(runs, plan(["t"], ["a"], 1)), page_file))


def test_a_contender_that_never_solved_anything_has_a_page(page_file):
    runs = [
        msgspec.structs.replace(run, valid=False, history=(), ideas=())
        for run in matrix(APART, ["t"])
    ]
    assert_self_contained(page_of(report(runs), page_file))


def test_tasks_without_a_leaderboard_have_a_page(page_file):
    runs = [msgspec.structs.replace(run, ranked=False) for run in matrix(APART, ["t"])]
    page = page_of(report(runs), page_file)
    assert_self_contained(page)
    assert "4 on tasks without a leaderboard" not in page.text
    assert "2 on tasks without a leaderboard" in page.text


def test_links_are_relative_and_lead_to_the_runs(tmp_path):
    root = tmp_path / "my results"
    html = root / "reports" / "all.html"
    found = report(matrix(APART, ["t"], 1), root=root)
    page = page_of(found, html)
    links = [href for href in page.values("href") if not href.startswith("#")]
    assert "../runs/t/offline%2Bgood/seed-0/" in links
    assert f"all_runs/{found.runs[0].page}" in links
    assert link(root / "runs", html) == "../runs"
    assert pages_folder(html).name == "all_runs"


def test_without_matplotlib_one_line_tells_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"pip install 'mle-ideator\[report\]'") as refused:
        make_report([tmp_path], html=tmp_path / "report.html")
    assert "\n" not in str(refused.value)


def test_plots_are_files_for_a_paper(tmp_path):
    found = report(matrix(APART, ["t", "u"]))
    written = write_plots(found, tmp_path / "plots")
    stems = {path.stem for path in written}
    assert {"scores", "score-by-step", "score-by-seconds", "any-medal-rate-by-seconds"} <= stems
    assert {"ideas-share", "tasks"} <= stems
    for path in written:
        if path.suffix == ".pdf":
            assert path.read_bytes().startswith(b"%PDF")
        else:
            texts = [each.text for each in ET.parse(path).iter("{http://www.w3.org/2000/svg}text")]
            assert {"good", "poor"} & set(texts)


def test_the_same_runs_give_the_same_plots(tmp_path):
    first, second = (
        write_plot(next(plots_of(report(matrix(APART, ["t"])))).figure, tmp_path / name / "plot")
        for name in "ab"
    )
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_a_contender_looks_the_same_in_every_plot():
    looks = looks_of(["a", "b", "c"])
    assert [looks[name].color for name in "abc"] == list(LIGHT[:3])
    many = looks_of([str(number) for number in range(24)])
    assert len({(look.color, look.line, look.marker) for look in many.values()}) == 24


def test_each_plot_says_its_numbers_in_words():
    plots = {plot.name: plot for plot in plots_of(report(matrix(APART)))}
    assert "good 80.5 [" in plots["scores"].alt
    assert "good 80.5" in plots["score-by-step"].alt
    assert "ensembling 50 %" in plots["ideas-share"].alt


def test_labels_at_the_ends_of_lines_keep_apart_and_in_order():
    heights = _apart([0.5, 0.5, 0.51, 0.1, 0.9], 0.1)
    in_order = sorted(heights)
    assert all(after - before >= 0.0999 for before, after in pairwise(in_order))
    assert heights[3] == pytest.approx(0.1)
    assert heights[4] == pytest.approx(0.9)
    assert heights[2] > heights[1] > heights[0]


def test_long_texts_are_cut_and_the_cut_is_counted():
    text = cut("a" * 10_000 + "\x00" + "z" * 10_000)
    assert (text[0], text[-1]) == ("a", "z")
    assert f"{20_001 - 6_000:,} characters are left out" in text


def test_a_diff_tells_what_changed():
    lines = [(line.kind, line.text) for line in diff_of("a\nb\nc", "a\nB\nc")]
    assert ("old", "-b") in lines
    assert ("new", "+B") in lines
    assert ("same", " a") in lines
    long = list(diff_of("", "\n".join(["x" * 1_000] * 5_000)))
    assert len(long) < 700
    assert max(len(line.text) for line in long) < 500
    assert "4,400 further lines" in long[-1].text
