"""The runner's parts that run nothing: plans, names, notes, locks, progress, shares."""

import os
import subprocess
import sys

import msgspec
import pytest

from mle_ideator.benchmarks.measures.values import Cell, Contender
from mle_ideator.benchmarks.runner.checks import check
from mle_ideator.benchmarks.runner.folders import name_of, path_of, run_folder
from mle_ideator.benchmarks.runner.local import LocalEngine, share_of
from mle_ideator.benchmarks.runner.matrix import Patience
from mle_ideator.benchmarks.runner.plan import (
    Asked,
    common_config,
    planned,
    read_plan,
    write_plan,
)
from mle_ideator.benchmarks.runner.progress import (
    Began,
    Done,
    Failed,
    Opened,
    Planned,
    Progress,
    Retried,
    Stepped,
)
from mle_ideator.benchmarks.runner.states import (
    CellState,
    cell_held,
    read_state,
    results_held,
    write_state,
)
from mle_ideator.config import RunConfig
from mle_ideator.errors import TaskError, UsageError
from mle_ideator.limits import Limits

ASKED = Asked(
    suite="s",
    tasks=("mnist5k", "image-segments"),
    ideators=("offline", "null"),
    seeds=(1, 4),
    config=common_config(RunConfig(sandbox="local", limits=Limits(steps=3))),
)
CELL = Cell("mnist5k", Contender("null", "offline"), 4)


def test_a_plan_gives_comparisons_early(tmp_path):
    plan = planned(tmp_path, ASKED)
    cells = plan.cells()
    assert len(cells) == len(set(cells)) == 8
    assert [(cell.seed, cell.task) for cell in cells[:4]] == [
        *[(1, "mnist5k")] * 2,
        *[(1, "image-segments")] * 2,
    ]
    config = plan.config_of(CELL)
    assert (config.task, config.ideator, config.seed) == ("mnist5k", "null", 4)
    assert (config.sandbox, config.limits.steps) == ("local", 3)


def test_a_plan_is_read_back_and_gone_on_with(tmp_path):
    plan = planned(tmp_path, ASKED)
    write_plan(tmp_path, plan)
    assert read_plan(tmp_path) == planned(tmp_path, Asked()) == planned(tmp_path, ASKED) == plan


def test_tasks_agents_and_seeds_may_be_added(tmp_path):
    write_plan(tmp_path, planned(tmp_path, ASKED))
    more = planned(tmp_path, Asked(seeds=(4, 1, 7), ideators=("null", "vague", "offline")))
    assert more.seeds == (1, 4, 7)
    assert more.ideators == ("offline", "null", "vague")
    assert len(more.cells()) == 18
    assert set(read_plan(tmp_path).cells()) < set(more.cells())


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"ideators": ("null",)}, "planned with ideator offline, which this call leaves out"),
        ({"seeds": (0, 1)}, "planned with seed 4, which this call leaves out"),
        ({"tasks": ("yeast",)}, "task mnist5k, image-segments, which this call leaves out"),
        ({"implementers": ("codeact",)}, "planned with implementer offline"),
        (
            {"config": common_config(RunConfig(sandbox="local", limits=Limits(steps=8)))},
            "planned with limits.steps = 3, not 8",
        ),
    ],
)
def test_another_plan_is_refused_naming_the_difference(tmp_path, changed, line):
    write_plan(tmp_path, planned(tmp_path, ASKED))
    with pytest.raises(UsageError, match=line) as refusal:
        planned(tmp_path, msgspec.structs.replace(ASKED, **changed))
    assert "\n" not in str(refusal.value)


def test_a_plan_of_an_earlier_version_is_gone_on_with(tmp_path):
    plan = planned(tmp_path, ASKED)
    older = {key: value for key, value in plan.config.items() if key != "keep_help_states"}
    write_plan(tmp_path, msgspec.structs.replace(plan, config=older))
    assert planned(tmp_path, ASKED).cells() == plan.cells()
    keeping = {**ASKED.config, "keep_help_states": True}
    with pytest.raises(UsageError, match="planned with keep_help_states = False, not True"):
        planned(tmp_path, msgspec.structs.replace(ASKED, config=keeping))


def test_a_plan_needs_tasks_and_a_config_of_no_run(tmp_path):
    with pytest.raises(UsageError, match="say what to run"):
        planned(tmp_path, Asked(ideators=("null",)))
    with pytest.raises(UsageError, match="config says 'seed'"):
        common_config(RunConfig(seed=3))
    with pytest.raises(UsageError, match="holds no plan"):
        read_plan(tmp_path)


def test_every_spec_has_a_safe_name_of_its_own():
    specs = [
        *("offline", "openai:gpt-5", "openai:gpt_5", "openai/gpt-5", "fixed:../../etc/passwd"),
        *("mlebench:/data/a/spaceship", "mlebench:/data/b/spaceship", "x" * 300, "x" * 301),
        *("..", ".", "", ":", "ü", "a+b", "CON:1"),
    ]
    names = [name_of(spec) for spec in specs]
    assert len(set(names)) == len(specs)
    for name in names:
        assert name.strip(".")
        assert not set(name) - set(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
        )
        assert len(name) < 80
    assert name_of("image-segments") == "image-segments"
    assert name_of("mlebench:/data/a/spaceship").startswith("mlebench-data-a-spaceship-")
    assert str(path_of(CELL)) == "mnist5k/offline+null/seed-4"


def test_notes_are_read_back_and_doubted_when_the_run_is_gone(tmp_path):
    assert read_state(tmp_path, CELL) == CellState(cell=CELL)
    done = CellState(cell=CELL, status="done", attempts=2, wall_s=3.5)
    write_state(tmp_path, done)
    assert read_state(tmp_path, CELL).status == "queued"
    run = run_folder(tmp_path, CELL)
    run.mkdir(parents=True)
    (run / "summary.json").write_text("{}")
    assert read_state(tmp_path, CELL) == done
    note = next(tmp_path.glob("cells/*/*/seed-4.json"))
    note.write_text('{"cell":')
    assert read_state(tmp_path, CELL) == CellState(cell=CELL)


HOLDS = """
import sys, time
from pathlib import Path
from mle_ideator.benchmarks.runner.states import results_held
with results_held(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_killed_runners_lock_is_taken_over_a_living_ones_is_not(tmp_path):
    command = [sys.executable, "-c", HOLDS, str(tmp_path)]
    other = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "held\n"
    with pytest.raises(UsageError, match=rf"at work on .*: process {other.pid} on "):
        results_held(tmp_path).__enter__()
    other.kill()
    other.communicate()
    with results_held(tmp_path):
        assert (tmp_path / "lock").read_text().startswith(f"{os.getpid()} on ")


def test_a_cell_is_held_by_one(tmp_path):
    with cell_held(tmp_path, CELL) as first, cell_held(tmp_path, CELL) as second:
        assert (first, second) == (True, False)
    with cell_held(tmp_path, CELL) as again:
        assert again


def progress_of(*events):
    progress = Progress()
    cells = tuple(Cell(task, Contender(i, "o"), 0) for task in "ab" for i in "xy")
    for event in (Planned(cells), Opened(2), *events):
        progress.take(event)
    return progress, cells


def test_progress_counts_and_compares():
    _, (ax, ay, bx, by) = progress_of()
    progress, _ = progress_of(
        Done(ax, 10.0, True, 0.5, before=True),
        Began(ay, 0.0),
        Stepped(ay, 3),
        Retried(ay, "gone", 5.0),
        Began(ay, 1.0),
        Done(ay, 30.0, False, 0.0),
        Began(bx, 2.0),
        Failed(bx, "for good"),
        Began(by, 3.0),
    )
    assert (len(progress.done), len(progress.failed), len(progress.running)) == (2, 1, 1)
    assert progress.open == 1
    assert progress.retries == 1
    assert progress.steps[ay] == 3
    first, second = progress.tallies()
    assert (first.contender.ideator, first.rank, first.valid) == ("x", 0.5, 1)
    assert (second.contender.ideator, second.rank, second.valid) == ("y", 0.0, 0)


def test_time_left_is_told_by_the_medians_of_tasks():
    assert progress_of()[0].left_s(0.0) is None
    _, (ax, ay, bx, by) = progress_of()
    progress, _ = progress_of(Done(ax, 10.0, True), Began(ay, 0.0))
    # 10 - 4 of the one that runs, and two more of task b of which nothing is known yet
    assert progress.left_s(4.0) == pytest.approx((6 + 10 + 10) / 2)
    progress.take(Done(bx, 100.0, True))
    assert progress.left_s(4.0) == pytest.approx(100)  # one can not be shared by two
    assert progress.left_s(1000.0) == pytest.approx(100)
    progress.take(Done(ay, 12.0, True))
    progress.take(Failed(by, "no"))
    assert progress.left_s(5.0) == 0


def test_gpus_are_dealt_out_and_cores_shared(tmp_path):
    assert [share_of("0,1,2", slot, 2) for slot in range(2)] == ["0,2", "1"]
    assert [share_of("0,1", slot, 3) for slot in range(3)] == ["0", "1", "0"]
    assert [share_of(gpus, 1, 2) for gpus in (None, "", "all")] == [None, "", "all"]
    cores = len(os.sched_getaffinity(0))
    assert LocalEngine(1, tmp_path).fitted(RunConfig(), 0).threads == cores
    assert LocalEngine(10 * cores, tmp_path).fitted(RunConfig(), 0).threads == 1
    assert LocalEngine(2, tmp_path).fitted(RunConfig(threads=7, gpus="3,4"), 1).threads == 7
    assert LocalEngine(2, tmp_path).fitted(RunConfig(gpus="3,4"), 1).gpus == "4"


def test_waits_grow_up_to_a_bound():
    patience = Patience()
    assert [patience.wait_s(n) for n in range(1, 6)] == [5, 20, 80, 320, 900]


@pytest.mark.parametrize(
    ("asked", "error", "line"),
    [
        ({"ideators": ("ofline",)}, UsageError, "did you mean 'offline'"),
        ({"implementers": ("offline", "no.module:X")}, UsageError, "can not be imported"),
        ({"tasks": ("image-segment",)}, TaskError, "did you mean 'image-segments'"),
        ({"ideators": ("human",)}, UsageError, "asks a person at the terminal"),
        ({"config": {"sandbox": "docke"}}, UsageError, "unknown sandbox"),
        ({"config": {"gpus": "first"}}, UsageError, "no GPU can be 'first'"),
        ({"config": {"help_policy": "now"}}, UsageError, "is no help policy"),
    ],
)
async def test_a_wrong_call_is_found_before_anything_runs(tmp_path, asked, error, line):
    usual = {"sandbox": "local"}
    asked = {**asked, "config": {**usual, **asked.get("config", {})}}
    plan = planned(tmp_path, msgspec.structs.replace(ASKED, **asked))
    with pytest.raises(error, match=line):
        await check(plan, plan.cells(), lambda task: None)
    await check(plan, [], lambda task: None)  # nothing is left to do
