"""Reports on real sessions: from results folders to files, pages and a browser."""

import asyncio
import json
import shutil
from pathlib import Path
from urllib.parse import unquote

import pandas as pd
import pytest
import yaml

from mle_ideator import __version__
from mle_ideator.benchmarks.reports.make import make_report
from mle_ideator.benchmarks.reports.page import pages_folder
from mle_ideator.benchmarks.runner.folders import run_folder
from mle_ideator.benchmarks.runner.plan import Plan, common_config, read_plan, write_plan
from mle_ideator.benchmarks.running import run_to_end, set_up
from mle_ideator.config import RunConfig
from mle_ideator.journal import FILE
from mle_ideator.limits import Limits
from tests.benchmarks.reported import Page, assert_self_contained
from tests.benchmarks.twice import write_task
from tests.conftest import writes_and_runs

EVIL = (
    "</pre><script>document.title = 'taken'</script>\x1b[31m\u202etxt.exe & <img src=http://x.y/>"
)
IDEA = {"analysis": f"Refine: {EVIL}", "action": "Blend two models.", "rationale": EVIL}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def script_in(file: Path) -> str:
    """A first solution that is off by a tenth, help, and a better one."""
    help_wanted = {"problem": EVIL, "attempts": "one", "goal": "less error"}
    cells = [writes_and_runs(1.9), writes_and_runs(2.05)]
    said = f"\nprint({EVIL!r})\nprint('x' * 30_000)"
    first, second = (
        {"type": "execute", "language": "python", "code": cell + said} for cell in cells
    )
    file.write_text(yaml.safe_dump([first, {"type": "seek_help", "request": help_wanted}, second]))
    return f"scripted:{file}"


def planned(task: Path, ideators: tuple[str, ...], implementer: str, steps: int) -> Plan:
    return Plan(
        version=__version__,
        suite="own",
        tasks=(str(task),),
        ideators=ideators,
        implementers=(implementer,),
        seeds=(0, 1),
        config=common_config(RunConfig(sandbox="local", threads=1, limits=Limits(steps=steps))),
    )


def run_all(results: Path, plan: Plan) -> None:
    """What `bench run` leaves."""
    results.mkdir(parents=True)
    write_plan(results, plan)
    for cell in plan.cells():
        folder = run_folder(results, cell)
        folder.mkdir(parents=True)
        asyncio.run(run_to_end(set_up(plan.config_of(cell), folder)))


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    """Two ideators and two seeds on one task; the last run was killed before its end."""
    home = tmp_path_factory.mktemp("report")
    (home / "ideas.yaml").write_text(yaml.safe_dump([IDEA]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLE_IDEATOR_CACHE", str(home / "cache"))
        ideators = (f"fixed:{home / 'ideas.yaml'}", "null")
        plan = planned(write_task(home / "twice"), ideators, script_in(home / "script.yaml"), 6)
        run_all(home / "R", plan)
        journal = run_folder(home / "R", plan.cells()[-1]) / FILE
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join(lines[:-3]) + b'{"type": "ste')
        yield home / "R"


@pytest.fixture(scope="module")
def page(results) -> Path:
    make_report([results], html=results / "report.html", files=results / "files", command="make")
    return results / "report.html"


def test_the_files_hold_what_the_journals_say(results, page):
    held = json.loads((results / "files" / "report.json").read_text())
    runs = pd.read_csv(results / "files" / "runs.csv")
    assert len(held["runs"]) == len(runs) == 4
    for row in runs.itertuples():
        summary = json.loads((results / row.folder / "summary.json").read_text())
        if row.state == "done":
            assert row.private == pytest.approx(summary["best"]["private"])
            assert row.improvements == summary["improvements"]
    assert sorted(runs.state) == ["done", "done", "done", "unended"]
    assert not runs[runs.state == "unended"].valid.any()
    (source,) = held["sources"]
    assert source["settings"]["seeds"] == [0, 1]
    assert source["versions"]["mle-ideator"] == __version__
    assert source["command"].startswith("mle-ideator bench run --task")


def test_every_link_of_the_pages_leads_somewhere(results, page):
    pages = [page, *pages_folder(page).iterdir()]
    assert len(pages) == 5
    for file in pages:
        found = Page(file)
        assert_self_contained(found)
        links = [href for href in found.values("href") if not href.startswith("#")]
        assert links
        for href in links:
            assert (file.parent / unquote(href)).exists(), href


def test_a_run_is_told_step_by_step_with_its_idea_and_what_changed(results, page):
    (file,) = pages_folder(page).glob("*fixed*seed-0*")
    text = Page(file).text
    assert "Blend two models." in text
    assert "its first solution was a new best" in text
    assert "What changed against the best before, #1" in text
    assert "-        print(name, float(x) * 1.9" in text
    assert "+        print(name, float(x) * 2.05" in text
    assert "characters are left out" in text
    assert "private" in text


def test_hostile_texts_of_agents_stay_texts(results, page):
    for file in [page, *pages_folder(page).iterdir()]:
        raw = file.read_text()
        assert "<script" not in raw
        assert "\x1b" not in raw
        assert "\u202e" not in raw
    (file,) = pages_folder(page).glob("*fixed*seed-0*")
    assert "document.title = 'taken'" in Page(file).text


def test_two_folders_side_by_side(results, tmp_path):
    shutil.copytree(results, tmp_path / "again" / "R", ignore=shutil.ignore_patterns("*.html"))
    plan = read_plan(results)
    found = make_report([results, tmp_path / "again" / "R"])
    assert len(found.contenders) == 2 * len(plan.ideators)
    assert len({named.name for named in found.contenders}) == 4
    (same,) = [
        compared
        for compared in found.figures.comparisons
        if compared.first.ideator.startswith("null") and compared.second.ideator.startswith("null")
    ]
    assert same.difference.value == 0
    assert same.pairs == 2


def test_a_journal_that_can_not_be_read_is_told(results, tmp_path):
    copy = tmp_path / "R"
    shutil.copytree(results, copy, ignore=shutil.ignore_patterns("*.html"))
    broken = run_folder(copy, read_plan(copy).cells()[0])
    journal = broken / FILE
    journal.write_bytes(journal.read_bytes().replace(b'"type":"stepped"', b'"type":"sleeped"', 1))
    found = make_report([copy], html=tmp_path / "report.html")
    (run,) = [run for run in found.runs if run.state == "failed"]
    assert "is no event" in run.measures.detail
    text = Page(pages_folder(tmp_path / "report.html") / run.page).text
    assert "is no event" in text
    assert "No step was recorded." in text


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    binary = next(filter(None, map(shutil.which, BROWSERS)), None)
    if binary is None:
        pytest.skip("there is no browser")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=binary, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_shows_the_pages_and_asks_for_nothing_else(browser, page, scheme):
    files = [page, *sorted(pages_folder(page).iterdir())]
    for file in files if scheme == "light" else files[:1]:
        tab = browser.new_page(color_scheme=scheme, viewport={"width": 400, "height": 800})
        asked, said = [], []
        tab.on("request", lambda request, asked=asked: asked.append(request.url))
        tab.on("console", lambda message, said=said: said.append(message.text))
        tab.on("dialog", lambda dialog, said=said: said.append("a dialog"))
        tab.goto(file.as_uri())
        assert asked == [file.as_uri()]
        assert said == []
        assert tab.title() != "taken"
        assert tab.evaluate("document.documentElement.scrollWidth") <= 400
        tab.close()


def test_a_keyboard_reaches_the_runs(browser, page):
    tab = browser.new_page()
    tab.goto(page.as_uri())
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    tab.locator("summary", has_text="4 runs").focus()
    tab.keyboard.press("Enter")
    for _ in range(2):  # the table, which can be scrolled, then its first link
        tab.keyboard.press("Tab")
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/report_runs/*.html")
    assert tab.locator("h2", has_text="Steps").is_visible()
    tab.close()


@pytest.mark.slow
def test_the_offline_pair_from_runs_to_the_report(tmp_path, monkeypatch):
    monkeypatch.setenv("MLE_IDEATOR_CACHE", str(tmp_path / "cache"))
    run_all(
        tmp_path / "R", planned(write_task(tmp_path / "twice"), ("offline", "null"), "offline", 3)
    )
    found = make_report([tmp_path / "R"], html=tmp_path / "report.html", plots=tmp_path / "plots")
    assert [named.name for named in found.contenders] == ["null", "offline"]
    assert all(run.state == "done" and run.measures.valid for run in found.runs)
    assert_self_contained(Page(tmp_path / "report.html"))
    assert (tmp_path / "plots" / "scores.pdf").exists()
