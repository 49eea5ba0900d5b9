"""Rollouts: real sessions, gone on with from a help state in a real sandbox."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from pathlib import Path

import pytest

from mle_ideator.benchmarks.running import run_to_end, set_up
from mle_ideator.config import RunConfig
from mle_ideator.errors import SandboxError, TaskError, UsageError
from mle_ideator.journal import FILE, Asked, Ended, Resumed, read_journal
from mle_ideator.limits import Limits
from mle_ideator.results import record_of
from mle_ideator.rl.rollout import roll_out
from mle_ideator.rl.values import RolloutJob
from mle_ideator.sandboxes import choose_sandbox
from mle_ideator.types import Finish, Idea, Proposal, Score, SeekHelp
from tests.benchmarks.twice import write_task
from tests.rl.rollout_agents import solves

AGENT = "tests.rl.rollout_agents:DoesAsTold"
AT = 2
"""The step of the help request."""


def cut_out(run: Path, folder: Path, step: int = AT) -> Path:
    """The help state at a step of a run, as a folder."""
    events = read_journal(run)
    places = [
        i for i, event in enumerate(events) if isinstance(event, Asked) and event.step == step
    ]
    lines = (run / FILE).read_bytes().splitlines(keepends=True)
    folder.mkdir(parents=True)
    (folder / FILE).write_bytes(b"".join(lines[: places[-1] + 1]))
    shutil.copytree(run / "help_states" / f"{step:03d}", folder / "workspace")
    return folder


@pytest.fixture(scope="module")
def state(tmp_path_factory) -> Path:
    """A help state in which the best solution is y = x."""
    folder = tmp_path_factory.mktemp("state")
    config = RunConfig(
        task=str(write_task(folder / "twice")),
        implementer=AGENT,
        ideator="null",
        sandbox="local",
        preload=("pandas",),
        keep_help_states=True,
        limits=Limits(steps=3),
    )
    run = folder / "run"
    run.mkdir()
    asyncio.run(run_to_end(set_up(config, run)))
    return cut_out(run, folder / "state")


def told(code: str) -> Proposal:
    return Proposal(Idea("Refine: the factor is wrong.", code, "It is nearer to the truth."))


def job(proposal: Proposal, **options) -> RolloutJob:
    return RolloutJob(state="…", proposal=proposal, **options)


def digest(folder: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        found.update(f"{path.relative_to(folder)} {path.stat().st_mode} ".encode())
        found.update(path.read_bytes() if path.is_file() else b"")
    return found.hexdigest()


@pytest.mark.parametrize(
    ("proposal", "outcome", "reward"),
    [
        (told(solves(1.5)), "improved", 1.0),
        (told(solves(0.5)), "not_improved", 0.0),
        (told(solves(1.0)), "not_improved", 0.0),
        (told("raise ValueError('no such column')"), "exec_failed", 0.0),
        (told("import time; time.sleep(60)"), "timeout", 0.0),
        (told("import os; os._exit(1)"), "exec_failed", 0.0),
        (told(" "), "invalid_format", -1.0),
        (Proposal(None, "no JSON", malformed=True), "invalid_format", -1.0),
        (Proposal(None, "I do not know"), "not_improved", 0.0),
    ],
    ids=["better", "worse", "same", "fails", "hangs", "dies", "empty", "rubbish", "none"],
)
async def test_every_outcome_and_its_reward(state, tmp_path, proposal, outcome, reward):
    before = digest(state)
    here = {"limits": {"steps": 3, "step_time_s": 3}}
    result = await roll_out(state, job(proposal), tmp_path / "run", here)
    assert (result.outcome, result.reward) == (outcome, reward)
    assert result.before is not None
    solved = proposal.idea is not None and outcome in ("improved", "not_improved")
    assert (result.after is not None) is solved
    assert bool(result.detail) == (result.after is None and outcome != "invalid_format")
    assert digest(state) == before


async def test_it_goes_on_where_the_help_was_sought(state, tmp_path):
    code = "print(open('kept.txt').read(), 'variable' in globals())\n" + solves(1.5)
    await roll_out(state, job(told(code)), tmp_path / "run")
    record = record_of(read_journal(tmp_path / "run"))
    asked, attempt, last, end = record.steps[AT - 1 :]
    assert isinstance(asked.action, SeekHelp)
    assert asked.idea is not None
    assert attempt.observation.text.startswith("kept False")
    assert isinstance(last.action, SeekHelp)
    assert last.idea is None
    assert isinstance(end.action, Finish)
    assert [s.number for s in record.solutions] == [1, 2]
    assert not record.reruns


@pytest.mark.parametrize("kind", ["bubblewrap", "docker"])
async def test_it_goes_on_in_another_sandbox_as_well(state, tmp_path, kind):
    if reason := choose_sandbox(kind)[1].unavailable():
        pytest.skip(reason)
    better, fails = told(solves(1.5)), told("raise ValueError('no such column')")
    here = {"sandbox": kind}
    assert (await roll_out(state, job(better), tmp_path / "1", here)).outcome == "improved"
    assert (await roll_out(state, job(fails), tmp_path / "2", here)).outcome == "exec_failed"


async def test_what_it_reached_is_a_help_state(state, tmp_path):
    await roll_out(state, job(told(solves(1.5))), tmp_path / "one")
    child = cut_out(tmp_path / "one", tmp_path / "child", step=AT + 2)
    worse = await roll_out(child, job(told(solves(1.25))), tmp_path / "worse")
    better = await roll_out(child, job(told(solves(1.75))), tmp_path / "better")
    assert (worse.outcome, better.outcome) == ("not_improved", "improved")
    assert worse.before == better.before
    assert worse.before.value == pytest.approx(better.after.value * 2)


async def test_repairs_are_made_as_far_as_they_are_allowed(state, tmp_path):
    code = (
        "import os\n"
        "first = not os.path.exists('tried'); open('tried', 'w').close()\n"
        f"assert not first\n{solves(1.5)}"
    )
    once = await roll_out(state, job(told(code)), tmp_path / "once")
    twice = await roll_out(state, job(told(code), attempts=2), tmp_path / "twice")
    assert (once.outcome, twice.outcome) == ("exec_failed", "improved")


async def test_the_least_gain_of_the_task_counts(state, tmp_path):
    lines = (state / FILE).read_text().splitlines(keepends=True)
    own = tmp_path / "state"
    shutil.copytree(state, own)
    task = tmp_path / "twice"
    write_task(task)
    (task / "task.yaml").write_text((task / "task.yaml").read_text() + "min_delta: 25\n")
    other = str(task)
    recorded = read_journal(state)[0].config["task"]
    (own / FILE).write_text("".join(lines).replace(recorded, other))
    result = await roll_out(own, job(told(solves(1.5))), tmp_path / "run")
    assert isinstance(result.before, Score)
    assert 0 < result.before.value - result.after.value < 25
    assert result.outcome == "not_improved"


async def test_a_task_that_is_another_one_is_refused(state, tmp_path):
    own = tmp_path / "state"
    shutil.copytree(state, own)
    text = (own / FILE).read_text()
    (own / FILE).write_text(text.replace('"rows":[40,40]', '"rows":[40,41]', 1))
    with pytest.raises(TaskError, match="rows is not as recorded"):
        await roll_out(own, job(told(solves(1.5))), tmp_path / "run")


async def test_a_journal_that_ends_otherwise_is_refused(state, tmp_path):
    own = tmp_path / "state"
    shutil.copytree(state, own)
    lines = (own / FILE).read_bytes().splitlines(keepends=True)
    (own / FILE).write_bytes(b"".join(lines[:-1]))
    with pytest.raises(UsageError, match="ends with its help request"):
        await roll_out(own, job(told(solves(1.5))), tmp_path / "run")


async def test_a_sandbox_that_breaks_is_no_result(state, tmp_path, monkeypatch):
    async def breaks(*_):
        raise SandboxError("the sandbox is gone")

    monkeypatch.setattr("mle_ideator.sandboxes.local.LocalSandbox.execute", breaks)
    with pytest.raises(SandboxError):
        await roll_out(state, job(told(solves(1.5))), tmp_path / "run")
    ended = [
        event for event in read_journal(tmp_path / "run") if isinstance(event, Ended | Resumed)
    ]
    assert [type(event) for event in ended] == [Resumed, Ended]
    assert ended[-1].outcome == "failed"
