"""`mle-ideator reproduce`: real runs, run again, in every state that a run's folder can be in."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from mle_ideator.cli import main
from mle_ideator.errors import SandboxError
from mle_ideator.sandboxes.local import LocalSandbox

TASK = "image-segments"
WRITES = """
import random
lines = open("input/sample_submission.csv").read().split()
with open("submission.csv", "w") as file:
    print(lines[0], file=file)
    for line in lines[1:]:
        name, *shares = line.split(",")
        weights = [float(share) * WEIGHT for share in shares]
        print(name, *(weight / sum(weights) for weight in weights), sep=",", file=file)
print("Validation score:", VALIDATION)
"""
CONSTANT = WRITES.replace("WEIGHT", "1").replace("VALIDATION", "1.9")
RANDOM = WRITES.replace("WEIGHT", "(1 + random.random())").replace("VALIDATION", "3.0")
NEEDY = "open('left_by_a_cell')" + WRITES.replace("WEIGHT", "1").replace("VALIDATION", "4.0")
CELL = (
    "open('left_by_a_cell', 'w').close()\n"
    "open('solution.py', 'w').write({code!r})\n"
    "import runpy; runpy.run_path('solution.py')"
)


def call(*arguments):
    """The exit code of a call in this process."""
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    return end.value.code


def recorded_run(folder: Path, *options: str, codes: tuple[str, ...]) -> Path:
    """A real run in the local sandbox whose steps write and run these solutions."""
    script = folder / "script.yaml"
    cells = [CELL.format(code=code) for code in codes]
    actions = [{"type": "execute", "language": "python", "code": cell} for cell in cells]
    script.write_text(yaml.safe_dump(actions))
    out = folder / "run"
    code = call(
        *("run", *options, "--implementer", f"scripted:{script}", "--ideator", "null"),
        *("--sandbox", "local", "--out", out, "--json"),
    )
    assert code == 0
    return out


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """Solution #1 is final; #2 is random, #3 does not run alone."""
    folder = tmp_path_factory.mktemp("recorded")
    run = recorded_run(folder, "--task", TASK, codes=(CONSTANT, RANDOM, NEEDY))
    edit(run, "started", lambda event: event["task"].update(min_delta=0.0))  # all differences count
    return run


@pytest.fixture
def run(original, tmp_path):
    """A copy, to be spoilt: a run's folder may have been moved."""
    return Path(shutil.copytree(original, tmp_path / "elsewhere", symlinks=True))


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """Where temporary folders are made."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def reproduced(capsys, *arguments) -> tuple[int, dict]:
    """The exit code and the JSON of a call."""
    code = call("reproduce", *arguments, "--json")
    output = capsys.readouterr()
    assert output.out.count("\n") == 1, output.err
    return code, json.loads(output.out)


def contents(folder: Path) -> dict[str, object]:
    """Everything in a folder: bytes, modes and times."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
            path.read_bytes() if path.is_file() else None,
        )
        for path in folder.rglob("*")
    }


def edit(run: Path, kind: str, change) -> None:
    """Change the events of a kind in a journal."""
    file = run / "journal.jsonl"
    events = [json.loads(line) for line in file.read_text().splitlines()]
    for event in events:
        if event["type"] == kind:
            change(event)
    file.write_text("".join(json.dumps(event, separators=(",", ":")) + "\n" for event in events))


# ------------------------------------------------------------------------------- reproduced


def test_a_run_is_reproduced_and_stays_as_it_is(original, scratch, capsys):
    before = contents(original)
    code, done = reproduced(capsys, original)
    assert code == 0
    assert (done["reproduced"], done["exact"], done["failure"]) == (True, True, "")
    assert {pair["verdict"] for pair in done["scores"].values()} == {"exact"}
    assert done["scores"]["validation"]["now"] == 1.9
    assert set(done["scores"]) == {"validation", "public", "private"}
    assert done["submission"]["verdict"] == "identical"
    assert (done["solution"], done["sandbox"], done["changes"]) == (1, "local", [])
    assert done["remarks"] == []
    assert contents(original) == before
    assert not list(scratch.iterdir())


def test_people_get_a_table_and_what_it_wrote_is_kept(run, tmp_path, capsys):
    out = tmp_path / "kept"
    assert call("reproduce", run / "journal.jsonl", "--out", out) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "solution #1 of image-segments: reproduced: every score is exactly as recorded" in shown
    assert "validation 1.9 1.9 exactly the same" in shown
    assert "submission identical, byte for byte" in shown
    done = json.loads((out / "reproduction.json").read_text())
    assert done["folder"] == str(out)
    assert (out / "001" / "submission.csv").read_bytes() == (run / "submission.csv").read_bytes()
    assert call("reproduce", run, "--out", out) == 2
    assert "is not empty" in capsys.readouterr().err


def test_rounding_is_told_apart_from_equality_and_from_difference(run, capsys):
    def nudge(by):
        return lambda event: event["scores"]["public"].update(
            value=event["scores"]["public"]["value"] * (1 + by)
        )

    edit(run, "rerun", nudge(1e-12))
    code, done = reproduced(capsys, run)
    assert (code, done["reproduced"], done["exact"]) == (0, True, False)
    assert done["scores"]["public"]["verdict"] == "close"
    edit(run, "rerun", nudge(1e-6))
    code, done = reproduced(capsys, run)
    assert (code, done["reproduced"], done["exact"]) == (1, False, False)
    assert done["scores"]["public"]["verdict"] == "differs"
    edit(run, "started", lambda event: event["task"].update(min_delta=1e-3))
    assert reproduced(capsys, run)[0] == 0


def test_a_private_score_that_the_record_does_not_have_is_not_shown(run, capsys):
    edit(run, "rerun", lambda event: event["scores"].update(private=None))
    code, done = reproduced(capsys, run)
    assert (code, set(done["scores"])) == (0, {"validation", "public"})


def test_other_versions_are_told(run, capsys):
    edit(run, "started", lambda event: event["sandbox"]["libraries"].update(numpy="0.1", gone="1"))
    edit(run, "started", lambda event: event["sandbox"].update(python="3.0.1", kind="docker"))
    code, done = reproduced(capsys, run)
    changes = {change["what"]: change for change in done["changes"]}
    assert code == 0
    assert set(changes) == {"numpy", "gone", "python", "sandbox"}
    assert changes["gone"]["now"] is None
    assert changes["python"]["recorded"] == "3.0.1"
    assert call("reproduce", run) == 0
    assert "gone 1 none differs" in " ".join(capsys.readouterr().out.split())


def test_a_task_whose_files_were_made_anew_is_told(run, capsys):
    """By the hash in the name of its folder; all that decides scores is the same."""
    edit(run, "started", lambda event: event["task"].update(inputs="/cache/image-0123/public"))
    code, done = reproduced(capsys, run)
    assert code == 0
    assert "were made anew" in done["remarks"][0]


def test_what_is_missing_is_taken_from_the_record(run, capsys):
    (run / "solution.py").unlink()
    shutil.rmtree(run / "rerun")
    code, done = reproduced(capsys, run)
    assert (code, done["submission"]) == (0, None)
    assert "solution.py is missing; the recorded code was run" in done["remarks"][0]


def test_a_run_that_was_killed_has_a_best_solution_so_far(run, capsys):
    file = run / "journal.jsonl"
    events = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in events if '"type":"ended"' not in line))
    (run / "solution.py").unlink()
    code, done = reproduced(capsys, run)
    assert (code, done["solution"]) == (0, 1)
    assert "has not ended" in " ".join(done["remarks"])


def test_two_at_once_on_one_run(original):
    command = [sys.executable, "-m", "mle_ideator", "reproduce", str(original), "--json"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = [json.loads(process.communicate(timeout=120)[0]) for process in both]
    assert [answer["exact"] for answer in answers] == [True, True]


# -------------------------------------------------------------------------- not reproduced


def test_a_solution_without_a_seed_differs_and_is_told_what_to_do(original, capsys):
    code, done = reproduced(capsys, original, "--solution", 2)
    assert code == 1
    assert done["scores"]["validation"]["verdict"] == "exact"
    assert done["scores"]["public"]["verdict"] == "differs"
    assert done["submission"]["verdict"] == "differ"
    assert done["submission"]["differing"] == done["submission"]["rows"] == 836
    assert 0 < done["submission"]["largest"] < 1
    assert "fixed seed" in done["remarks"][-1]


def test_a_solution_that_needs_what_a_cell_left_fails(original, capsys):
    code, done = reproduced(capsys, original, "--solution", 3)
    assert (code, done["reproduced"], done["submission"]) == (1, False, None)
    assert "left_by_a_cell" in done["failure"]
    assert done["scores"]["public"]["verdict"] == "missing"
    assert call("reproduce", original, "--solution", 3) == 1
    assert "FileNotFoundError" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda text: text + "\n# a comment", 0),
        (lambda text: text.replace("* 1 for", "** 2 for"), 1),
        (lambda text: "raise SystemExit('no')", 1),
    ],
)
def test_a_changed_solution_is_run_as_it_lies_and_told(run, change, code, capsys):
    file = run / "solution.py"
    file.write_text(change(file.read_text()))
    found, done = reproduced(capsys, run)
    assert found == code
    assert "solution.py is not the recorded code" in done["remarks"][0]
    assert not any("fixed seed" in remark for remark in done["remarks"])


def test_a_solution_gets_no_more_time_than_it_is_given(run, capsys):
    (run / "solution.py").write_text("import time; time.sleep(600)")
    start = time.monotonic()
    code, done = reproduced(capsys, run, "--time", "1s")
    assert code == 1
    assert done["failure"].startswith("it was stopped after 1 s")
    assert time.monotonic() - start < 60


# -------------------------------------------------------------------------------- bad input


def drop(kind):
    """A change of a folder: the events of a kind are gone."""

    def change(run):
        file = run / "journal.jsonl"
        events = file.read_text().splitlines(keepends=True)
        file.write_text("".join(line for line in events if f'"type":"{kind}"' not in line))

    return change


def started(change):
    return lambda run: edit(run, "started", change)


@pytest.mark.parametrize(
    ("change", "options", "line"),
    [
        (shutil.rmtree, [], "holds no journal of a run"),
        (lambda run: (run / "journal.jsonl").write_text("what?\n"), [], "line 1 is no event"),
        (drop("solved"), [], "has no solution: no step of it wrote a valid submission"),
        (lambda run: None, ["--solution", "9"], "has no solution 9; it has 1, 2, 3"),
        (started(lambda e: e.update(version="99.1.0")), [], "recorded by mle-ideator 99.1.0"),
        (
            started(lambda e: e.update(version="99.1.0", more=1)),
            [],
            "mle-ideator 99.1.0 wrote it, this is",
        ),
        (started(lambda e: e["config"].update(sedd=1)), [], "recorded config can not be read"),
        (started(lambda e: e["config"].update(task="gone")), [], "unknown task 'gone'"),
        (started(lambda e: e["task"].update(rows=[1, 2])), [], "its rows is not as recorded"),
        (
            started(lambda e: e["task"]["baseline"]["private"].update(value=7.0)),
            [],
            "its baseline is not as recorded",
        ),
        (lambda run: None, ["--sandbox", "locl"], "unknown sandbox 'locl'"),
        (lambda run: None, ["--time", "soon"], "is no duration"),
        (lambda run: None, ["--time", "0"], "must be more than 0"),
        (lambda run: None, ["--out", "elsewhere/again"], "lies in the run's own folder"),
    ],
)
def test_a_wrong_call_gets_one_clear_line(
    run, change, options, line, scratch, capsys, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    change(run)
    before = contents(tmp_path)
    assert call("reproduce", run, *options, "--json") == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert line in output.err
    assert output.err.count("\n") == 1
    assert contents(tmp_path) == before


class Broken(LocalSandbox):
    """Its kernel never starts."""

    async def __aenter__(self):
        raise SandboxError("the machine is on fire.")


def test_a_broken_sandbox_is_no_difference(original, scratch, capsys):
    assert call("reproduce", original, "--sandbox", f"{__name__}:Broken", "--json") == 3
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.endswith("mle-ideator: the machine is on fire.\n")
    assert not [path for path in scratch.iterdir() if "reproduce" in path.name]


# -------------------------------------------------------------------------------- interrupts


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing(run, scratch, number):
    mark = f"9{os.getpid()}.{int(number)}5"
    (run / "solution.py").write_text(f"import subprocess; subprocess.run(['sleep', '{mark}'])")
    before = contents(run)
    process = subprocess.Popen(
        [sys.executable, "-m", "mle_ideator", "reproduce", str(run), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(scratch)},
    )
    deadline = time.monotonic() + 60
    while not _alive(mark):
        assert time.monotonic() < deadline, "the solution did not start"
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert err.endswith("mle-ideator: interrupted; the run's folder is as it was.\n")
    assert not _alive(mark)
    assert not [path for path in scratch.iterdir() if "reproduce" in path.name]
    assert contents(run) == before


def _alive(mark: str) -> bool:
    return subprocess.run(["pgrep", "-f", f"^sleep {mark}$"], capture_output=True).returncode == 0


# --------------------------------------------------------------------------------- own data


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A run on a person's own classes, three of them, with rows of their own to predict."""
    folder = tmp_path_factory.mktemp("own")
    rows = [f"{i},{i % 97},{'abc'[i % 3]}" for i in range(120)]
    (folder / "train.csv").write_text("\n".join(["no,size,kind", *rows]))
    (folder / "test.csv").write_text("\n".join(["no,size", *(f"{i},1" for i in range(500, 510))]))
    options = ("--train", folder / "train.csv", "--test", folder / "test.csv")
    target = ("--target", "kind", "--metric", "log_loss", "--id-column", "no")
    return recorded_run(folder, *map(str, options), *target, codes=(CONSTANT,))


def test_own_data_are_graded_on_the_split_that_the_run_kept(own, tmp_path, capsys):
    """The folder was moved, and the person's files are gone."""
    moved = Path(shutil.copytree(own, tmp_path / "moved"))
    for name in ("train.csv", "test.csv"):
        (own.parent / name).unlink()
    before = contents(moved)
    code, done = reproduced(capsys, moved)
    assert (code, done["exact"], done["submission"]["verdict"]) == (0, True, "identical")
    assert contents(moved) == before


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda data: shutil.rmtree(data), "lacks public/train.csv, public/test.csv"),
        (lambda data: (data / "private" / "answers.csv").unlink(), "lacks private/answers.csv"),
        (lambda data: _rewrite(data / "private" / "answers.csv", "a,p", "b,p"), "was changed"),
        (lambda data: _rewrite(data / "private" / "answers.csv", "kind", "kinds"), "was changed"),
    ],
)
def test_a_split_that_is_lost_or_changed_is_no_basis(own, tmp_path, change, line, capsys):
    moved = Path(shutil.copytree(own, tmp_path / "moved"))
    change(moved / "data")
    assert call("reproduce", moved) == 2
    output = capsys.readouterr().err
    assert line in output
    assert output.count("\n") == 1


def _rewrite(file: Path, old: str, new: str) -> None:
    file.chmod(0o644)
    file.write_text(file.read_text().replace(old, new))


# ------------------------------------------------------------------------------ the real pair


@pytest.mark.slow
def test_what_the_embedded_pair_makes_is_reproduced_in_the_strongest_sandbox(tmp_path, capsys):
    out = tmp_path / "run"
    assert call("run", "--task", TASK, "--steps", 3, "--out", out, "--json") == 0
    capsys.readouterr()
    for number in (1, 2):
        code, done = reproduced(capsys, out, "--solution", number)
        assert (code, done["exact"], done["submission"]["verdict"]) == (0, True, "identical")
