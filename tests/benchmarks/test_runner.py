"""The matrix with real sessions in real workers: what is done, tried again, given up, refused."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import psutil
import pytest

from mle_ideator.benchmarks.measures.values import Cell, Contender
from mle_ideator.benchmarks.runner.bench import run_bench
from mle_ideator.benchmarks.runner.folders import run_folder
from mle_ideator.benchmarks.runner.local import LocalEngine
from mle_ideator.benchmarks.runner.matrix import Patience
from mle_ideator.benchmarks.runner.plan import Asked, common_config, read_plan
from mle_ideator.benchmarks.runner.progress import Began, Done, Failed, Retried
from mle_ideator.benchmarks.runner.progress import Stepped as Told
from mle_ideator.benchmarks.runner.states import read_state
from mle_ideator.config import RunConfig
from mle_ideator.errors import UsageError
from mle_ideator.journal import FILE, Ended, Resumed, Started, Stepped, read_journal
from mle_ideator.journal import Asked as AskedHelp
from mle_ideator.results import record_of

ROOT = Path(__file__).parents[2]
AGENTS = "tests.benchmarks.runner_agents"
TASK = "image-segments"
AT_ONCE = Patience(attempts=3, first_wait_s=0.05, factor=1)


def asked_for(implementer="Quick", ideators=("null",), seeds=(0,)):
    return Asked(
        suite="own",
        tasks=(TASK,),
        ideators=ideators,
        implementers=(f"{AGENTS}:{implementer}",),
        seeds=seeds,
        config=common_config(RunConfig(sandbox="local", preload=(), threads=1)),
    )


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A results folder; agents are found by the workers and remember in `RUNNER_TESTS`."""
    monkeypatch.setenv("RUNNER_TESTS", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return tmp_path / "results"


async def bench(results, asked, workers=1, patience=AT_ONCE):
    """Run it here, with workers of their own; the events."""
    events = []
    await run_bench(
        results,
        asked,
        lambda plan: LocalEngine(workers, results / "logs"),
        events.append,
        patience,
    )
    return events


def of(kind, events):
    return [event for event in events if isinstance(event, kind)]


def assert_each_done_once(results, *, resumed=None):
    """Every cell's journal is whole: one start, every step once, one end that counts."""
    cells = read_plan(results).cells()
    for cell in cells:
        assert read_state(results, cell).status == "done"
        folder = run_folder(results, cell)
        events = read_journal(folder)
        assert len(of(Started, events)) == 1
        assert [event.step.number for event in of(Stepped, events)] == [1, 2, 3]
        assert of(Ended, events)[-1].outcome == "finished"
        assert isinstance(events[-1], Ended)
        record = record_of(events)
        assert len(record.solutions) == 1
        assert record.reproduced is not None
        assert (folder / "summary.json").exists()
        assert resumed is None or bool(of(Resumed, events)) == resumed
    assert len(list(results.glob("runs/*/*/*"))) == len(cells)


async def test_every_cell_is_done_and_a_second_call_has_nothing_to_do(results):
    asked = asked_for(ideators=("null", f"{AGENTS}:BrokenIdeator"), seeds=(3,))
    events = await bench(results, asked, workers=2)
    assert_each_done_once(results, resumed=False)
    assert len(of(Done, events)) == len(of(Began, events)) == 2
    assert {event.step for event in of(Told, events)} == {1, 2, 3}
    assert all(event.valid and event.wall_s > 0 for event in of(Done, events))

    # an ideator that breaks is no failure of the runtime: the session goes on without help
    broken = Cell(TASK, Contender(f"{AGENTS}:BrokenIdeator", f"{AGENTS}:Quick"), 3)
    record = record_of(read_journal(run_folder(results, broken)))
    assert any("no ideas" in warning for warning in record.warnings)
    assert record.started.config["seed"] == 3
    assert record.started.config["threads"] == 1

    again = await bench(results, Asked())
    assert not of(Began, again)
    assert [event.before for event in of(Done, again)] == [True] * 2

    # one that was ended, but is not noted as such, is not run again
    before = (run_folder(results, broken) / FILE).read_bytes()
    (run_folder(results, broken) / "summary.json").unlink()
    more = msgspec.structs.replace(asked, tasks=(TASK,), seeds=(3, 6))
    grown = await bench(results, more, workers=2)
    assert len(of(Began, grown)) == 3
    assert_each_done_once(results, resumed=False)
    assert (run_folder(results, broken) / FILE).read_bytes() == before


async def test_what_breaks_is_tried_again_and_goes_on_where_it_was(results):
    events = await bench(results, asked_for("FailsTwice"))
    assert_each_done_once(results, resumed=True)
    assert [event.error for event in of(Retried, events)] == ["the sandbox is gone"] * 2
    cell = read_plan(results).cells()[0]
    assert read_state(results, cell).attempts == 3
    journal = read_journal(run_folder(results, cell))
    assert [event.outcome for event in of(Ended, journal)] == ["failed", "failed", "finished"]
    assert len(of(AskedHelp, journal)) == 1


@pytest.mark.slow
async def test_what_never_works_is_given_up_and_the_rest_goes_on(results):
    asked = asked_for("NeverWorks")
    asked = msgspec.structs.replace(asked, implementers=(*asked.implementers, f"{AGENTS}:Quick"))
    events = await bench(results, asked)
    failed = of(Failed, events)
    assert [event.cell.contender.implementer for event in failed] == [f"{AGENTS}:NeverWorks"]
    assert failed[0].error == "the implementer broke: RuntimeError: out of order"
    assert len(of(Retried, events)) == 2
    assert len(of(Done, events)) == 1
    state = read_state(results, failed[0].cell)
    assert (state.status, state.attempts, state.error) == ("failed", 3, failed[0].error)
    # it has another chance when the same is called again
    again = await bench(results, Asked())
    assert len(of(Began, again)) == 3


async def test_a_killed_worker_loses_its_cell_only(results):
    events = await bench(results, asked_for("KillsOnce"), workers=2)
    assert_each_done_once(results, resumed=True)
    errors = [event.error for event in of(Retried, events)]
    assert len(errors) == 1
    assert all(error.startswith("the worker was killed (SIGKILL); see ") for error in errors)


async def test_a_call_that_proves_wrong_ends_all_at_once(results):
    asked = asked_for("FindsTheCallWrong", seeds=(0, 1, 2))
    with pytest.raises(UsageError, match="there is no such model: name another"):
        await bench(results, asked)
    assert len(list(results.glob("runs/*/*/*"))) == 1


async def test_a_wrong_call_leaves_no_folder(results):
    with pytest.raises(UsageError, match="asks a person"):
        await bench(results, asked_for(ideators=(f"{AGENTS}:AtTheTerminal",)))
    assert not results.exists()
    results.mkdir()
    (results / "thesis.tex").write_text("")
    with pytest.raises(UsageError, match="is not empty and holds no results"):
        await bench(results, asked_for())


@pytest.mark.slow
async def test_a_recording_that_is_damaged_fails_alone_and_at_once(results):
    asked = asked_for(seeds=(0, 1))
    cell = Cell(TASK, Contender("null", f"{AGENTS}:Quick"), 0)
    folder = run_folder(results, cell)
    await bench(results, msgspec.structs.replace(asked, seeds=(1,)))
    folder.mkdir(parents=True)
    (folder / FILE).write_text('{"type":"started"\n')
    events = await bench(results, asked)
    assert [event.cell for event in of(Failed, events)] == [cell]
    assert "line 1 is no event" in of(Failed, events)[0].error
    assert not of(Retried, events)


# ------------------------------------------------------------------------------- kill -9


def start_runner(results, asked, workers):
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.benchmarks.runner_driver", str(results), str(workers)),
            msgspec.json.encode(asked).decode(),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until(found, patience_s=120.0):
    deadline = time.monotonic() + patience_s
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def workers_of(runner):
    found = psutil.Process(runner.pid).children()
    return [
        process for process in found if "mle_ideator.benchmarks.runner.worker" in process.cmdline()
    ]


@pytest.mark.parametrize("everything", [False, pytest.param(True, marks=pytest.mark.slow)])
async def test_a_killed_runner_loses_nothing(results, tmp_path, everything):
    asked = asked_for("Waits", seeds=(0, 1))
    runner = start_runner(results, asked, 2)
    wait_until(lambda: all((tmp_path / f"waits-{seed}").exists() for seed in (0, 1)))
    with pytest.raises(UsageError, match=rf"at work on .*: process {runner.pid} on "):
        await bench(results, Asked())
    states = [read_state(results, cell) for cell in read_plan(results).cells()]
    workers = workers_of(runner)
    assert [state.status for state in states] == ["running"] * 2
    runner.send_signal(signal.SIGKILL)
    for worker in workers if everything else ():
        worker.kill()
    runner.communicate()
    (tmp_path / "go").touch()
    await bench(results, asked, workers=2)
    assert_each_done_once(results, resumed=True)
    wait_until(lambda: not any(worker.is_running() for worker in workers), 30)


@pytest.mark.slow
async def test_workers_end_in_order_when_their_runner_is_killed(results, tmp_path):
    runner = start_runner(results, asked_for("Waits"), 1)
    wait_until((tmp_path / "waits-0").exists)
    worker = workers_of(runner)[0]
    runner.send_signal(signal.SIGKILL)
    runner.communicate()
    worker.wait(60)
    journal = read_journal(run_folder(results, read_plan(results).cells()[0]))
    assert journal[-1].outcome == "interrupted"


@pytest.mark.slow
def test_workers_have_no_console_of_the_runners(results, tmp_path):
    """What they print goes to their log: stdout carries replies."""
    asked = asked_for()
    runner = start_runner(results, asked, 1)
    assert runner.communicate(timeout=300) == ("", "")
    assert runner.returncode == 0
    assert (results / "logs" / "worker-1.txt").read_text() == ""
