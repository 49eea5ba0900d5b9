"""A task small enough for every test, and sessions on it with real kernels."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from mle_ideator.benchmarks.grading.grader import FileGrader
from mle_ideator.config import RunConfig
from mle_ideator.journal import FILE, Journal, read_journal
from mle_ideator.results import record_of
from mle_ideator.sandboxes.local import LocalSandbox
from mle_ideator.session import run_session
from mle_ideator.setups import Setup
from mle_ideator.types import Metric, Score, Scores, Task

ROWS = 20

# A background job ignores interrupts, and hands that on to every process that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def tiny_task(tmp_path: Path) -> tuple[Task, FileGrader]:
    """y = 2 x without noise; half of the test rows public, half private."""
    public, private = tmp_path / "task" / "public", tmp_path / "task" / "private"
    public.mkdir(parents=True)
    private.mkdir()
    train = ["id,x,y", *(f"a{i},{i},{2 * i}" for i in range(ROWS))]
    test = ["id,x", *(f"b{i},{i}" for i in range(ROWS))]
    sample = ["id,y", *(f"b{i},0" for i in range(ROWS))]
    answers = [
        "id,y,part",
        *(f"b{i},{2 * i},{'public' if i % 2 else 'private'}" for i in range(ROWS)),
    ]
    for folder, name, lines in (
        (public, "train.csv", train),
        (public, "test.csv", test),
        (public, "sample_submission.csv", sample),
        (private, "answers.csv", answers),
    ):
        (folder / name).write_text("\n".join(lines) + "\n")
    task = Task(
        id="tiny",
        title="Twice as much",
        description="Predict y from x.",
        type="tabular-regression",
        split="own",
        metric=Metric("rmse", higher_is_better=False),
        id_column="id",
        targets=("y",),
        prediction="value",
        rows=(ROWS, ROWS),
        source="made by the tests",
        licence="Apache-2.0",
        inputs=str(public),
        baseline=Scores(public=Score(20.0, False), private=Score(20.0, False)),
    )
    grader = FileGrader(
        private / "answers.csv", metric="rmse", id_column="id", targets=("y",), prediction="value"
    )
    return task, grader


SOLUTION = """
rows = open("input/test.csv").read().split()[1:]
with open("submission.csv", "w") as file:
    print("id,y", file=file)
    for row in rows:
        name, x = row.split(",")
        print(name, float(x) * FACTOR, sep=",", file=file)
print("Validation score:", abs(2 - FACTOR))
"""


def writes_and_runs(factor: float) -> str:
    """A cell that writes solution.py (y = factor * x) and runs it in a process of its own."""
    code = SOLUTION.replace("FACTOR", str(factor))
    return (
        f"open('solution.py', 'w').write({code!r})\n"
        "import subprocess, sys\n"
        "script = [sys.executable, 'solution.py']\n"
        "print(subprocess.run(script, capture_output=True, text=True).stdout)"
    )


@pytest.fixture
def play(tmp_path, tiny_task):
    """Run a session on the tiny task in the local sandbox; returns the record of its journal."""

    async def session(implementer, ideator, grader=None, folder="run", **config):
        task, own_grader = tiny_task
        folder = tmp_path / folder
        folder.mkdir()
        setup = Setup(
            task=task,
            grader=grader or own_grader,
            implementer=implementer,
            ideator=ideator,
            sandbox=LocalSandbox,
            folder=folder,
            config=RunConfig(**config),
        )
        with Journal(folder / FILE) as journal:
            await run_session(setup, journal)
        return record_of(read_journal(folder))

    return session


@pytest.fixture
def folder_of_run(tmp_path: Path) -> Path:
    return tmp_path / "run"
