"""`mle-ideator bench run` as scripts and people call it."""

import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from mle_ideator.benchmarks.measures.values import Cell, Contender
from mle_ideator.benchmarks.runner.folders import run_folder
from mle_ideator.benchmarks.runner.plan import read_plan
from mle_ideator.benchmarks.runner.progress import (
    Began,
    Building,
    Done,
    Failed,
    Opened,
    Planned,
    Retried,
    Stepped,
)
from mle_ideator.cli import main
from mle_ideator.cli.matrix import MatrixConsole, matrix_console
from mle_ideator.journal import read_journal

ROOT = Path(__file__).parents[2]
AGENTS = "tests.benchmarks.runner_agents"
QUICK = ("--task", "image-segments", "--ideator", "null", "--sandbox", "local", "--seeds", "1")
QUICK = (*QUICK, "--set", "preload=[]")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "Missing option '--out'"),
        (["--out", "R"], "say what to run: --suite NAME"),
        (["--out", "R", "--suite", "smok"], "did you mean 'smoke'"),
        (["--out", "R", "--task", "mnist5k", "--seeds", "2", "--seed", "7"], "not both"),
        (["--out", "R", "--task", "mnist5k", "--engine", "rai"], "unknown engine 'rai'"),
        (["--out", "R", "--task", "mnist5k", "--address", "x"], "say --engine ray"),
        (["--out", "R", "--task", "mnist5k", "--set", "seed=3"], "config says 'seed'"),
        (["--out", "R", "--task", "mnist5k", "--steps", "0"], "limit 'steps'"),
        (["--out", "R", "--task", "mnist5k", "--time", "soon"], "is no duration"),
        (["--out", "R", "--task", "mnist5k", "--ideator", "ofline"], "did you mean 'offline'"),
        (["--out", "R", "--task", "mnist5k", "--ideator", "human"], "asks a person"),
        (["--out", "R", "--task", "image-segment"], "did you mean 'image-segments'"),
        (["--out", "file", "--task", "mnist5k"], "--out"),
    ],
)
def test_a_wrong_call_gets_one_clear_line_and_leaves_nothing(
    arguments, line, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit) as end:
        main(["bench", "run", *arguments])
    assert end.value.code == 2
    errors = capsys.readouterr().err
    assert line in errors
    assert errors.startswith("mle-ideator: ")
    assert errors.count("\n") == 1
    assert not (tmp_path / "R").exists()


def start(*arguments, cwd):
    return subprocess.Popen(
        [sys.executable, "-m", "mle_ideator", "bench", "run", "--out", "R", *arguments],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "RUNNER_TESTS": str(cwd),
            "PYTHONPATH": os.pathsep.join(
                [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
            ),
        },
    )


def wait_until(found, process, patience_s=120.0):
    deadline = time.monotonic() + patience_s
    while not found():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_matrix_with_a_failure_and_the_same_call_again(tmp_path):
    agents = [f"{AGENTS}:{name}" for name in ("Quick", "NeverWorks")]
    call = (*QUICK, "--implementer", agents[0], "--implementer", agents[1], "--attempts", "1")
    process = start(*call, cwd=tmp_path)
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 1, errors
    assert errors == ""
    assert "2 runs; 1 at a time\n" in output
    assert re.search(rf"^\[1/2\] image-segments, {agents[0]} \+ null, seed 0: valid", output, re.M)
    assert f"{agents[1]} + null, seed 0: given up: the implementer broke" in output
    assert output.endswith("1 of 2 runs done, 1 failed; the same command goes on; results in R\n")

    other = start("--set", "limits.steps=9", cwd=tmp_path)
    refused = other.communicate(timeout=60)[1]
    assert other.returncode == 2
    assert "these results were planned with" in refused
    assert refused.count("\n") == 1


def test_ctrl_c_ends_runs_in_order_and_the_same_command_goes_on(tmp_path):
    call = (*QUICK, "--implementer", f"{AGENTS}:Waits")
    process = start(*call, cwd=tmp_path)
    wait_until((tmp_path / "waits-0").exists, process)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "ending the runs in order; once more ends them at once" in output
    assert "interrupted: 0 of 1 runs done; the same command goes on; results in R" in output
    folder = run_folder(tmp_path / "R", read_plan(tmp_path / "R").cells()[0])
    assert read_journal(folder)[-1].outcome == "interrupted"
    (tmp_path / "go").touch()
    again = start(cwd=tmp_path)
    output, errors = again.communicate(timeout=300)
    assert again.returncode == 0, errors
    assert output.endswith("1 of 1 runs done; results in R\n")
    assert read_journal(folder)[-1].outcome == "finished"


@pytest.mark.slow
def test_a_second_ctrl_c_ends_them_at_once(tmp_path):
    process = start(*QUICK, "--implementer", f"{AGENTS}:Stubborn", cwd=tmp_path)
    wait_until((tmp_path / "stubborn").exists, process)
    process.send_signal(signal.SIGINT)
    wait_until((tmp_path / "asked-to-end").exists, process)
    start_s = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.wait(50) == 130  # without it, a minute is waited
    assert time.monotonic() - start_s < 50
    process.communicate()


CELLS = tuple(Cell(task, Contender("null", "offline"), 0) for task in ("a", "b", "c\x1b[2J"))
EVENTS = (
    Planned(CELLS, "0.0.9"),
    Building("a"),
    Building("b"),
    Opened(2),
    Done(CELLS[0], 61.0, True, 0.5, before=True),
    Began(CELLS[1], 0.0),
    Stepped(CELLS[1], 4),
    Began(CELLS[2], 0.0),
    Retried(CELLS[1], "the sandbox is gone", 5.0),
    Failed(CELLS[1], "the sandbox is gone"),
    Done(CELLS[2], 30.0, False, 0.0),
)


def test_elsewhere_it_is_a_line_for_what_matters():
    stream = io.StringIO()
    with matrix_console(stream) as console:
        for event in EVENTS:
            console.take(event)
        console.finish(Path("R"), interrupted=False)
    lines = stream.getvalue().splitlines()
    assert lines[:6] == [
        "these results were begun by mle-ideator 0.0.9: compare with care",
        "looking at the tasks; those that were never built are built now",
        "3 runs; 2 at a time",
        "b, offline + null, seed 0: broke, tried again in 5s: the sandbox is gone",
        "[2/3] b, offline + null, seed 0: given up: the sandbox is gone",
        "[3/3] c\N{SYMBOL FOR ESCAPE}[2J, offline + null, seed 0: no valid solution, 30s",
    ]
    assert lines[-2:] == [
        "failed: b, offline + null, seed 0: the sandbox is gone",
        "2 of 3 runs done, 1 failed; the same command goes on; results in R",
    ]
    assert re.search(r"offline \+ null +2 +1 +0\.250", stream.getvalue())


def test_on_a_terminal_it_is_a_picture():
    console = MatrixConsole(Console(file=io.StringIO(), force_terminal=True, width=100))
    screen = Console(file=io.StringIO(), width=100)
    screen.print(console._draw())
    for event in EVENTS[:8]:
        console.take(event)
        screen.print(console._draw())
    drawn = screen.file.getvalue()
    assert "looking at agents, sandbox and tasks" in drawn
    assert "1 done, 2 running, 0 failed of 3, about" in drawn
    assert re.search(r"b, offline \+ null, seed 0 +step 4", drawn)
    assert "\x1b[2J" not in drawn
