"""Collected help states, and their rollouts in worker processes, from the command line down."""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from mle_ideator.cli import main
from mle_ideator.rl.buffer.disk import load
from mle_ideator.rl.executor import ResultCache
from mle_ideator.rl.executor.local import LocalExecutor
from mle_ideator.rl.files import files_of
from mle_ideator.rl.states import StateStore
from mle_ideator.rl.stored import StoredRollouts
from mle_ideator.rl.values import RolloutJob, RolloutResult
from mle_ideator.types import Idea, Proposal, Usage
from tests.benchmarks.twice import write_task
from tests.rl.rollout_agents import solves

AGENT = "tests.rl.rollout_agents:DoesAsTold"
FACTORS = (1.5, 0.5, 1.75)


def called(capsys, *arguments) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return int(ended.value.code or 0), capsys.readouterr().out


@pytest.fixture(scope="module", autouse=True)
def agents_that_workers_find():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
        yield


@pytest.fixture(scope="module")
def states(tmp_path_factory) -> Path:
    """A store with the help requests of two sessions, collected as a user does it."""
    folder = tmp_path_factory.mktemp("collected")
    with pytest.raises(SystemExit) as ended:
        main(
            [
                *("collect", "--task", str(write_task(folder / "twice")), "--seeds", "2"),
                *("--implementer", AGENT, "--ideator", "null", "--sandbox", "local"),
                *("--steps", "3", "--set", 'preload=["pandas"]', "--out", str(folder / "s.db")),
            ]
        )
    assert not ended.value.code
    return folder / "s.db"


def told(factor: float) -> Proposal:
    return Proposal(Idea("Refine: the factor is wrong.", solves(factor), "It is nearer."))


def rollouts_of(store: StateStore, executor: LocalExecutor, **options) -> StoredRollouts:
    return StoredRollouts(store, executor, files_of(store.path).packed, **options)


def content(store: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(store.with_suffix(".files").rglob("*")):
        if path.is_file():
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def essence(result: RolloutResult) -> RolloutResult:
    """What has to come again."""
    return msgspec.structs.replace(result, seconds=0.0)


def test_sessions_become_help_states_once(states, capsys):
    with StateStore(states) as store:
        (card,) = store.cards()  # the two sessions differ in their seed alone, which is no state's
        assert (card.kind, card.depth, card.steps) == ("improve", 0, 1)
    assert card.id in load(files_of(states).buffer)
    code, out = called(capsys, "states", "list", states)
    assert code == 0
    assert card.id[:16] in out
    assert called(capsys, "states", "check", states) == (0, "1 help states, 0 damages\n")


async def test_any_order_and_any_parallelism_give_the_same_rewards(states):
    with StateStore(states) as store:
        (state,) = (card.id for card in store.cards(limit=1))
        before, found = content(states), []
        jobs = [RolloutJob(state=state, proposal=told(factor)) for factor in FACTORS]
        for slots, order in ((1, (0, 1, 2)), (2, (2, 0, 1))):
            async with LocalExecutor(slots) as executor:
                rollouts = rollouts_of(store, executor, keep_reached=False)
                results = await asyncio.gather(*(rollouts.run(jobs[i]) for i in order))
            by_job = dict(zip(order, map(essence, results), strict=True))
            found.append([by_job[i] for i in range(len(jobs))])
        assert found[0] == found[1]
        assert [result.outcome for result in found[0]] == ["improved", "not_improved", "improved"]
        assert content(states) == before


async def test_what_was_executed_is_not_executed_again(states, tmp_path):
    cache = ResultCache(tmp_path / "cache")
    with StateStore(states) as store:
        (state,) = (card.id for card in store.cards(limit=1))
        job = RolloutJob(state=state, proposal=told(1.25))
        async with LocalExecutor(2, cache=cache) as executor:
            rollouts = rollouts_of(store, executor)
            one, two = await asyncio.gather(rollouts.run(job), rollouts.run(job))
            assert executor.counters().merged == 1
        async with LocalExecutor(1, cache=cache) as executor:
            again = await rollouts_of(store, executor).run(job)
            other = await rollouts_of(store, executor).run(msgspec.structs.replace(job, seed=1))
            assert (executor.counters().cache_hits, executor.counters().done) == (1, 1)
        assert one == two == again
        assert essence(other) != essence(again) or other.seed == 1
        child = store.card(again.child)
        assert (child.parent, child.depth, child.steps) == (state, 1, 3)
        assert child.score.value == pytest.approx(again.after.value)


async def test_ideas_that_are_carried_out_alike_are_executed_once(states):
    with StateStore(states) as store:
        (state,) = (card.id for card in store.cards(limit=1))
        idea = told(1.3).idea
        other = msgspec.structs.replace(idea, rationale="Another reason.")
        answers = [
            Proposal(idea),
            Proposal(other, usage=Usage(calls=1, output_tokens=70)),
            Proposal(msgspec.structs.replace(idea, action=solves(1.4))),
        ]
        async with LocalExecutor(2) as executor:
            rollouts = rollouts_of(store, executor, keep_reached=False)
            jobs = [RolloutJob(state=state, proposal=answer) for answer in answers]
            results = await asyncio.gather(*map(rollouts.run, jobs))
            assert (executor.counters().merged, executor.counters().done) == (1, 2)
    assert [result.idea for result in results] == [answer.idea for answer in answers]
    assert results[0].after == results[1].after != results[2].after


async def test_an_answer_that_can_not_be_read_is_not_executed(states):
    with StateStore(states) as store:
        (card,) = store.cards(limit=1)
        async with LocalExecutor(1) as executor:
            rollouts = rollouts_of(store, executor)
            answer = Proposal(None, "it is empty", malformed=True)
            result = await rollouts.run(RolloutJob(state=card.id, proposal=answer))
            assert executor.counters().done == 0
    assert (result.outcome, result.reward, result.before) == ("invalid_format", -1.0, card.score)


async def test_a_rollout_that_hangs_is_killed_and_told(states):
    with StateStore(states) as store:
        (state,) = (card.id for card in store.cards(limit=1))
        hangs = Proposal(Idea("Refine: wait.", "import time; time.sleep(600)", "It may help."))
        async with LocalExecutor(1) as executor:
            short = rollouts_of(store, executor, limit_s=4)
            result = await short.run(RolloutJob(state=state, proposal=hangs))
            assert (result.outcome, result.reward, result.child) == ("timeout", 0.0, None)
            job = RolloutJob(state=state, proposal=told(1.5))
            after = await rollouts_of(store, executor).run(job)
            assert after.outcome == "improved"


async def test_a_help_state_of_another_task_is_no_result(states, tmp_path):
    with StateStore(states) as store:
        (state,) = (card.id for card in store.cards(limit=1))
        async with LocalExecutor(1) as executor:
            rollouts = rollouts_of(store, executor, here={"task": str(tmp_path / "gone")})
            result = await rollouts.run(RolloutJob(state=state, proposal=told(1.5)))
    assert (result.outcome, result.reward) == ("infra_error", None)
    assert "gone" in result.detail


def test_one_rollout_is_shown_and_observed(states, capsys, tmp_path):
    ideas = tmp_path / "ideas.yaml"
    idea = {"analysis": "Refine: try.", "action": solves(1.9), "rationale": "It is nearer."}
    ideas.write_text(json.dumps([idea]))
    with StateStore(states) as store:
        state = store.cards(limit=1)[0].id
    executed = load(files_of(states).buffer).explain(state).executed
    call = ("rollout", "--states", states, "--state", state[:12], "--ideator", f"fixed:{ideas}")
    code, out = called(capsys, *call)
    assert code == 0
    assert "reward    +1" in out
    code, out = called(capsys, *call, "--json")
    result = msgspec.json.decode(out, type=RolloutResult)
    assert (result.state, result.outcome, result.reward) == (state, "improved", 1.0)
    buffer = load(files_of(states).buffer)
    assert buffer.explain(state).executed == executed + 2
    assert result.child in buffer
    code, out = called(capsys, "buffer", "show", states, "--json")
    assert json.loads(out)["metrics"]["states"] == len(buffer)


def test_ideators_are_compared_on_the_same_states(states, capsys, tmp_path):
    ideas = tmp_path / "ideas.yaml"
    idea = {"analysis": "Refine: try.", "action": solves(1.95), "rationale": "It is nearer."}
    ideas.write_text(json.dumps([idea]))
    call = ("evaluate", "--states", states, "--limit", 1, "--ideator", f"fixed:{ideas}")
    call = (*call, "--ideator", "null", "--workers", 2, "--out", tmp_path / "out")
    code, out = called(capsys, *call, "--json")
    assert code == 0
    told = json.loads(out)
    rewards = {row["contender"]: row["figures"][0]["value"] for row in told["rows"][:2]}
    assert set(rewards.values()) == {1.0, 0.0}
    code, out = called(capsys, *call)
    assert "Pairs of ideators" in out
    assert (tmp_path / "out" / "pairs.csv").exists()


def test_ideators_are_compared_in_whole_sessions(capsys, tmp_path):
    task = write_task(tmp_path / "twice")
    call = ("evaluate", "--task", task, "--ideator", "null", "--ideator", "vague", "--seeds", 1)
    call = (*call, "--steps", 3, "--sandbox", "local", "--out", tmp_path / "out")
    code, out = called(capsys, *call, "--json")
    assert code == 0
    told = json.loads(out)
    assert {run["contender"] for run in told["runs"]} == {"null", "vague"}


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (("--ideator", "null"), "say --states STORE, or --suite NAME"),
        (("--ideator", "null", "--states", "s.db", "--task", "ames"), "say --states STORE, or"),
        (("--ideator", "null", "--task", "ames"), "say --out"),
    ],
)
def test_one_kind_of_evaluation_is_asked_for(call, what, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["evaluate", *call])
    assert ended.value.code == 2
    assert what in capsys.readouterr().err


def test_an_evaluation_that_is_ended_says_so_in_one_line_and_goes_on(states, tmp_path):
    ideas = tmp_path / "ideas.yaml"
    idea = {"analysis": "Refine: wait.", "action": "import time; time.sleep(60)", "rationale": "-x"}
    ideas.write_text(json.dumps([idea]))
    call = [sys.executable, "-m", "mle_ideator", "evaluate", "--states", str(states)]
    call += ["--ideator", "null", "--ideator", f"fixed:{ideas}", "--out", str(tmp_path / "out")]
    with subprocess.Popen(call, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        log = tmp_path / "out" / "tries.jsonl"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and (
            not log.exists() or log.read_bytes().count(b"\n") < 2
        ):
            time.sleep(0.1)
        process.terminate()
        said = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 130
    assert said.splitlines()[-1] == "mle-ideator: interrupted."
    assert "Traceback" not in said
    assert log.read_bytes().count(b"\n") == 2  # the heading, and what `null` brought


def test_a_state_is_mailed(states, capsys, tmp_path):
    with StateStore(states) as store:
        state = store.cards(limit=1)[0].id
    file, other = tmp_path / "one.state", tmp_path / "other.db"
    assert called(capsys, "states", "export", states, state[:10], file)[0] == 0
    assert called(capsys, "states", "import", other, file)[0] == 0
    with StateStore(other) as store:
        assert [card.id for card in store.cards()] == [state]


@pytest.mark.parametrize(
    "call",
    [
        ("rollout", "--states", "gone.db", "--state", "a"),
        ("evaluate", "--states", "gone.db", "--ideator", "null"),
        ("states", "list", "gone.db"),
        ("buffer", "show", "gone.db"),
    ],
    ids=lambda call: call[0],
)
def test_a_store_that_is_not_there_is_one_line(call, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(call)
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not list(tmp_path.iterdir())
