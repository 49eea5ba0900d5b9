"""The command line as scripts and people call it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from mle_ideator.cli import main

TASK = "image-segments"
CELL = """
import pandas as pd
sample = pd.read_csv("input/sample_submission.csv")
sample.to_csv("submission.csv", index=False)
open("solution.py", "w").write('''
import pandas as pd
pd.read_csv("input/sample_submission.csv").to_csv("submission.csv", index=False)
print("Validation score: 1.9")
''')
print("Validation score: 1.9")
"""


def call(*arguments):
    """The exit code of a call in this process."""
    with pytest.raises(SystemExit) as end:
        main(arguments)
    return end.value.code


def script(folder: Path, *cells: str) -> str:
    """A spec of the scripted implementer that plays these cells."""
    actions = [{"type": "execute", "language": "python", "code": cell} for cell in cells]
    file = folder / "script.yaml"
    file.write_text(yaml.safe_dump(actions))
    return f"scripted:{file}"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["runn"], "Did you mean 'run'"),
        (["run"], "say what to work on"),
        (["run", "--task", "a", "--train", "b", "--target", "c"], "say what to work on"),
        (["run", "--tsk", "a"], "No such option: --tsk"),
        (["run", "--task", "image-segment"], "did you mean 'image-segments'"),
        (["run", "--task", "../../etc"], "is no task: it has no task.yaml"),
        (["run", "--task", TASK, "--ideator", "ofline"], "did you mean 'offline'"),
        (["run", "--task", TASK, "--implementer", "no.module:Class"], "can not be imported"),
        (["run", "--task", TASK, "--ideator", "os:getcwd"], "is no ideator"),
        (["run", "--task", TASK, "--sandbox", "docke"], "unknown sandbox"),
        (["run", "--task", TASK, "--steps", "0"], "limit 'steps' must be more than 0"),
        (["run", "--task", TASK, "--steps", "many"], "Invalid value for '--steps'"),
        (["run", "--task", TASK, "--time", "soon"], "is no duration"),
        (["run", "--task", TASK, "--time", ""], "is no duration"),
        (["run", "--task", TASK, "--set", "limits.stepz=1"], "did you mean 'limits.steps'"),
        (["run", "--task", TASK, "--config", "/nowhere.yaml"], "can not be read"),
        (["run", "--train", "/nowhere.csv", "--target", "y"], "/nowhere.csv"),
        (["run", "--train", "/nowhere.csv"], "target"),
        (["show", "/nowhere"], "holds no journal"),
    ],
)
def test_a_wrong_call_gets_one_clear_line_and_leaves_nothing(
    arguments, line, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert call(*arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert line in output.err
    assert output.err.startswith("mle-ideator: ")
    assert output.err.count("\n") == 1
    assert not list(tmp_path.glob("runs/*"))


def test_no_command_and_help_and_version(capsys):
    assert call("--help") == 0
    assert "doctor" in capsys.readouterr().out
    assert call("--version") == 0
    assert capsys.readouterr().out == "0.1.0\n"


def test_tasks_lists_what_scripts_rely_on(capsys):
    assert call("tasks", "--json") == 0
    cards = json.loads(capsys.readouterr().out)
    keys = {"id", "type", "split", "metric", "higher_is_better", "rows", "source", "licence"}
    assert len(cards) >= 8
    assert all(keys <= set(card) for card in cards)
    assert call("tasks") == 0
    shown = capsys.readouterr().out
    assert all(card["id"] in shown and card["licence"] in shown for card in cards)


def test_a_run_from_call_to_result_folder(capsys, tmp_path):
    out = tmp_path / "result"
    implementer = script(tmp_path, CELL)
    code = call(
        *("run", "--task", TASK, "--implementer", implementer, "--ideator", "null"),
        *("--sandbox", "local", "--out", str(out), "--json", "--seed", "5"),
    )
    output = capsys.readouterr()
    summary = json.loads(output.out)
    assert code == 0
    assert output.out.count("\n") == 1
    assert "solution #1" in output.err
    assert summary["task"] == TASK
    assert summary["best"]["validation"] == 1.9
    assert summary["best"]["solution"] == str(out / "solution.py")
    assert summary["reproduced"] is True
    assert json.loads((out / "summary.json").read_text()) == summary
    assert yaml.safe_load((out / "config.yaml").read_text())["seed"] == 5
    assert {"solution.py", "submission.csv", "journal.jsonl"} <= {f.name for f in out.iterdir()}

    assert call("run", "--task", TASK, "--out", str(out)) == 2
    assert "is not empty" in capsys.readouterr().err
    assert call("show", str(out)) == 0
    shown = capsys.readouterr().out
    assert "solution #1" in shown
    assert "read_csv" in shown
    assert call("show", str(out), "--step", "9") == 2
    assert "has no step 9" in capsys.readouterr().err
    assert call("show", str(out), "--json") == 0
    assert json.loads(capsys.readouterr().out)["solutions"][0]["number"] == 1


def test_a_weaker_sandbox_is_announced_and_recorded(tmp_path):
    """With neither bwrap nor Docker, `auto` takes `local`, and says what that means."""
    python = tmp_path / "bin"
    python.mkdir()
    environment = os.environ | {"PATH": str(python), "DOCKER_HOST": "unix:///nowhere"}
    command = [
        *(sys.executable, "-m", "mle_ideator", "run", "--task", TASK, "--json"),
        *("--implementer", script(tmp_path, CELL), "--out", str(tmp_path / "result")),
    ]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert "weaker local sandbox, as bubblewrap does not work: the program bwrap" in done.stderr
    assert "weaker local sandbox" in json.loads(done.stdout)["warnings"][0]
    assert done.returncode == 0


def test_a_run_without_a_submission_says_so_with_its_exit_code(capsys, tmp_path):
    implementer = script(tmp_path, "print('nothing')")
    code = call(
        *("run", "--task", TASK, "--implementer", implementer, "--sandbox", "local"),
        *("--out", str(tmp_path / "result"), "--json"),
    )
    assert code == 1
    assert json.loads(capsys.readouterr().out)["best"]["solution"] is None


class Breaks:
    """An implementer with a bug."""

    async def act(self, situation):
        raise RuntimeError("a bug in act")


def test_a_runtime_that_fails_says_so_with_its_exit_code(capsys, tmp_path):
    code = call(
        *("run", "--task", TASK, "--implementer", f"{__name__}:Breaks", "--sandbox", "local"),
        *("--out", str(tmp_path / "result"), "--json"),
    )
    output = capsys.readouterr()
    assert code == 3
    assert json.loads(output.out)["outcome"] == "failed"
    assert output.err.splitlines()[-1].startswith("mle-ideator: the implementer broke")


def running(tmp_path: Path, mark: str) -> tuple[subprocess.Popen[str], Path]:
    """A run in a process of its own that solves and then sleeps; waits until it does."""
    out = tmp_path / "result"
    sleeps = f"import subprocess; subprocess.run(['setsid', 'sleep', '{mark}'])"
    command = [
        *(sys.executable, "-m", "mle_ideator", "run", "--task", TASK, "--sandbox", "local"),
        *("--implementer", script(tmp_path, CELL, sleeps), "--out", str(out), "--json"),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not alive(mark):
        assert time.monotonic() < deadline, "the run did not come to its second cell"
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    return process, out


def alive(mark: str) -> bool:
    return subprocess.run(["pgrep", "-f", f"^sleep {mark}$"], capture_output=True).returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_what_was_solved(tmp_path, number):
    mark = f"9{os.getpid()}.{int(number)}"
    process, _ = running(tmp_path, mark)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    summary = json.loads(out)
    assert process.returncode == 0, err
    assert summary["outcome"] == "interrupted"
    assert Path(summary["best"]["solution"]).exists()
    assert not alive(mark)


def test_a_background_job_of_a_script_ends_by_sigterm(tmp_path):
    """A shell without job control starts background jobs with SIGINT ignored."""
    mark = f"9{os.getpid()}.7"
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process, _ = running(tmp_path, mark)
    finally:
        signal.signal(signal.SIGINT, before)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None
    process.terminate()
    out, _ = process.communicate(timeout=30)
    assert json.loads(out)["outcome"] == "interrupted"


def test_a_bug_in_the_runtime_keeps_what_was_solved(tmp_path, capsys, monkeypatch):
    """Any exception, not only those raised on purpose."""
    monkeypatch.setattr("mle_ideator.session.hand_over", lambda *_: 1 / 0)
    code = call(
        *("run", "--task", TASK, "--implementer", script(tmp_path, CELL), "--sandbox", "local"),
        *("--out", str(tmp_path / "result"), "--json"),
    )
    output = capsys.readouterr()
    assert code == 3
    assert json.loads(output.out)["best"]["validation"] == 1.9
    assert (tmp_path / "result" / "solution.py").exists()
    assert "internal error" in output.err.splitlines()[-1]


def test_a_killed_run_leaves_a_readable_journal_and_no_process(tmp_path, capsys):
    mark = f"9{os.getpid()}.9"
    process, out = running(tmp_path, mark)
    process.kill()
    process.communicate(timeout=30)
    deadline = time.monotonic() + 10
    while alive(mark) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not alive(mark)
    assert call("show", str(out)) == 0
    assert "solution #1" in capsys.readouterr().out


def test_doctor_tries_each_sandbox(capsys):
    call("doctor", "--json")
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)}
    assert checks["sandbox local"]["works"] is True
    assert checks["tasks"]["works"] is True
    assert checks["OPENAI_API_KEY"]["found"] in ("set", "not set")
    assert call("doctor") == 0
    assert "sandbox local" in capsys.readouterr().out


def test_two_runs_at_once_do_not_meet(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = [
        *(sys.executable, "-m", "mle_ideator", "run", "--task", TASK, "--sandbox", "local"),
        *("--implementer", script(tmp_path, CELL), "--json"),
    ]
    runs = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for _ in range(3)
    ]
    folders = {json.loads(run.communicate(timeout=120)[0])["run"] for run in runs}
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert len(folders) == 3
