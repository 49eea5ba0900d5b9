"""A session that was broken off goes on as if nothing had been, but for its kernel."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import msgspec
import pytest
import yaml

from mle_ideator.benchmarks.running import (
    has_ended,
    lacks_results,
    run_to_end,
    set_up,
    set_up_again,
    write_all_results,
)
from mle_ideator.config import RunConfig
from mle_ideator.errors import UsageError
from mle_ideator.journal import (
    FILE,
    Asked,
    Decided,
    Ended,
    Journal,
    Rerun,
    Resumed,
    Solved,
    Started,
    Stepped,
    StillWritten,
    read_journal,
)
from mle_ideator.limits import Limits
from mle_ideator.replay import help_state_at
from mle_ideator.results import record_of
from mle_ideator.sandboxes.local import LocalSandbox
from mle_ideator.session import run_session
from mle_ideator.setups import Setup
from mle_ideator.types import (
    UNKNOWN_USAGE,
    Decision,
    Execute,
    Finish,
    Idea,
    Proposal,
    Usage,
)
from tests.conftest import writes_and_runs
from tests.core.test_replay import Records
from tests.core.test_session import HELP, Plays

CELLS = ("kept = 1; open('note', 'w').write('kept')", writes_and_runs(1), HELP, Finish("enough"))
LOOKS = "import os; print('kept' in globals(), os.path.exists('note'))"
NOTE = "goes on in a new kernel"
RECORDED = []


@pytest.fixture
async def recorded(play, folder_of_run):
    """The folder and the events of a session of four steps: once for all."""
    if not RECORDED:
        limits = Limits(tokens=10_000, cost_usd=10)
        await play(Plays(*CELLS), Records(), seed=7, limits=limits, preload=())
        RECORDED.extend([folder_of_run, read_journal(folder_of_run)])
    return RECORDED


@pytest.fixture
def go_on(recorded, tmp_path, tiny_task):
    """Go on with a copy of the recorded session, of whose journal only some events are left."""

    async def resume(kept, implementer, ideator=None, **limits):
        whole, _ = recorded
        folder = tmp_path / "again"
        if not folder.exists():
            shutil.copytree(whole, folder, symlinks=True)
        task, grader = tiny_task
        kept = [msgspec.structs.replace(kept[0], task=task), *kept[1:]]
        (folder / FILE).write_bytes(b"".join(msgspec.json.encode(e) + b"\n" for e in kept))
        setup = Setup(
            task=task,
            grader=grader,
            implementer=implementer,
            ideator=ideator or Records(),
            sandbox=LocalSandbox,
            folder=folder,
            config=RunConfig(
                seed=7, limits=Limits(**{"tokens": 10_000, "cost_usd": 10, **limits}), preload=()
            ),
        )
        with Journal(folder / FILE) as journal:
            await run_session(setup, journal, record_of(read_journal(folder)).past)
        return read_journal(folder)

    return resume


def until(events, kind, number=1):
    """Events up to and with the n-th of a kind."""
    places = [place for place, event in enumerate(events) if isinstance(event, kind)]
    return events[: places[number - 1] + 1]


def assert_whole(events):
    """Steps and solutions count through, and the last word is the end."""
    record = record_of(events)
    assert [step.number for step in record.steps] == list(range(1, len(record.steps) + 1))
    numbers = [solution.number for solution in record.solutions]
    assert numbers == list(range(1, len(numbers) + 1))
    times = [event.at_s for event in events[1:]]
    assert times == sorted(times)
    assert isinstance(events[-1], Ended)
    assert has_ended(record)
    return record


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        (Started, 1),
        (Solved, 1),
        (Rerun, 1),
        *(
            pytest.param(*cut, marks=pytest.mark.slow)
            for cut in ((Decided, 1), (Stepped, 1), (Decided, 2), (Stepped, 2), (Decided, 3))
        ),
        *(
            pytest.param(*cut, marks=pytest.mark.slow)
            for cut in ((Asked, 1), (Stepped, 3), (Decided, 4), (Stepped, 4))
        ),
    ],
)
async def test_wherever_it_was_broken_off_its_journal_becomes_whole(go_on, recorded, kind, number):
    kept = until(recorded[1], kind, number)
    events = await go_on(kept, Plays(*CELLS))
    record = assert_whole(events)
    assert events[1 : len(kept)] == kept[1:]
    assert isinstance(events[len(kept)], Resumed)
    assert len(record.steps) == 4
    assert record.ended.outcome == "finished"
    assert record.final is not None
    assert record.reproduced.scores.public == record.final.scores.public
    assert len(record.reruns) == 1


async def test_files_are_there_variables_are_gone_and_the_implementer_is_told(go_on, recorded):
    agent = Plays(*CELLS[:2], LOOKS)
    events = await go_on(until(recorded[1], Stepped, 2), agent)
    first = agent.saw[0]
    assert [step.number for step in first.trajectory] == [1, 2]
    assert NOTE in first.trajectory[1].observation.text
    assert NOTE not in first.trajectory[0].observation.text
    assert first.remaining.steps == 18
    assert first.solutions[0].scores.private is None
    record = assert_whole(events)
    assert record.steps[2].observation.text.startswith("False True")
    assert record.steps[1] == first.trajectory[1]


async def test_a_solution_of_a_step_that_was_broken_off_counts_once(go_on, recorded):
    kept = until(recorded[1], Solved)
    assert not isinstance(kept[-1], Stepped)
    agent = Plays(CELLS[0], "print('nothing is written')", writes_and_runs(1.9))
    record = assert_whole(await go_on(kept, agent))
    assert agent.saw[0].best == 1
    assert len(agent.saw[0].trajectory) == 1
    assert [step.solution for step in record.steps] == [None, None, 2, None]
    assert record.bests == (1, 2)
    assert record.final.number == 2


async def test_broken_off_twice_it_is_told_once(go_on, recorded):
    kept = until(recorded[1], Stepped, 2)
    again = Resumed(at_s=kept[-1].at_s, resumed_at="", sandbox=kept[0].sandbox)
    agent = Plays(*CELLS)
    record = assert_whole(await go_on([*kept, again, again], agent))
    assert agent.saw[0].trajectory[1].observation.text.count(NOTE) == 1
    assert record.steps[1] == agent.saw[0].trajectory[1]


async def test_a_help_request_that_was_broken_off_is_made_anew_and_read_back(go_on, recorded):
    ideator, agent = Records(), Plays(*CELLS)
    events = await go_on(until(recorded[1], Asked), agent, ideator)
    assert_whole(events)
    assert len(ideator.states) == 1
    assert help_state_at(events, 3) == ideator.states[0] == help_state_at(events)
    assert ideator.states[0].situation.remaining.help_requests == 10
    later = help_state_at(events, 4).situation
    assert later.trajectory == agent.saw[1].trajectory
    assert later.remaining.help_requests == agent.saw[1].remaining.help_requests == 9
    assert later.remaining.cost_usd == agent.saw[1].remaining.cost_usd == 9.5


async def test_a_help_request_that_was_decided_otherwise_is_none(go_on, recorded):
    agent = Plays(*CELLS[:2], "print('no help')", Finish())
    events = await go_on(until(recorded[1], Asked), agent)
    assert record_of(events).help_requests == 0
    state = help_state_at(events, 3)
    assert state.request.problem.startswith("What to do next is open")
    assert state.situation.remaining.help_requests == 10
    assert state.situation.trajectory == agent.saw[0].trajectory
    assert help_state_at(events).situation.trajectory == record_of(events).steps


def test_a_help_request_that_was_under_way_is_read_back_as_it_was_asked(recorded):
    whole = recorded[1]
    assert help_state_at(until(whole, Asked)) == help_state_at(whole, 3)
    broken = [*until(whole, Asked), Resumed(at_s=9, resumed_at="", sandbox=whole[0].sandbox)]
    assert NOTE in help_state_at(broken, 3).situation.trajectory[-1].observation.text


async def test_the_sandbox_is_the_one_in_force(recorded):
    whole = recorded[1]
    other = msgspec.structs.replace(whole[0].sandbox, cores=99)
    broken = [*until(whole, Stepped), Resumed(at_s=9, resumed_at="", sandbox=other)]
    assert help_state_at(broken).situation.sandbox.cores == 99
    assert help_state_at(broken, 1).situation.sandbox == whole[0].sandbox


@pytest.mark.parametrize(
    ("limits", "outcome"), [({"steps": 2}, "steps"), ({"time_s": 1e-3}, "time")]
)
async def test_limits_that_were_used_up_stay_used_up(go_on, recorded, limits, outcome):
    events = await go_on(until(recorded[1], Stepped, 2), Plays(*CELLS), **limits)
    record = record_of(events)
    assert len(record.steps) == 2
    assert record.ended.outcome == outcome


async def test_time_between_does_not_count(go_on, recorded):
    kept = until(recorded[1], Stepped, 2)
    agent = Plays(*CELLS)
    await go_on(kept, agent)
    spent = 3600 * 0.9 - agent.saw[0].remaining.seconds
    assert kept[-1].at_s <= spent < kept[-1].at_s + 60


async def test_what_models_used_is_counted_even_where_some_of_it_is_unknown(go_on, recorded):
    def with_usage(event, usage):
        decision = msgspec.structs.replace(event.decision, usage=usage)
        return msgspec.structs.replace(event, decision=decision)

    known = Usage(1, 900, 0, 100, 0, 4.0, 4.0)
    usages = iter([known, UNKNOWN_USAGE, known])
    kept = [
        with_usage(event, next(usages)) if isinstance(event, Decided) else event
        for event in until(recorded[1], Decided, 3)
    ]
    agent = Plays(*CELLS)
    await go_on(kept, agent)
    assert agent.saw[0].remaining.tokens == 10_000 - 2_000
    assert agent.saw[0].remaining.cost_usd == 2.0  # the decision that was broken off as well


async def test_requests_beyond_the_limit_leave_none_not_less(go_on, recorded):
    agent = Plays(*CELLS[:3], HELP)
    events = await go_on(until(recorded[1], Stepped, 3), agent, help_requests=0)
    assert [saw.remaining.help_requests for saw in agent.saw] == [0, 0]
    assert_whole(events)


class Breaks:
    """An implementer whose server is lost at its third step."""

    async def act(self, situation):
        if len(situation.trajectory) == 2:
            raise RuntimeError("the server is gone")
        return Decision(Execute("python", CELLS[len(situation.trajectory)]))


class Answers:
    async def propose(self, state):
        return Proposal(Idea("Refine.", "Go on.", "Why not."))


# --------------------------------------------------------------------- with its task and files

SUBMITS = """
import shutil
shutil.copy("input/sample_submission.csv", "submission.csv")
print("Validation score: 0.5")
"""
SOLVES = f"open('solution.py', 'w').write({SUBMITS!r}); exec(open('solution.py').read())"


def script(folder, *cells):
    file = folder / "script.yaml"
    entries = [{"type": "execute", "language": "python", "code": cell} for cell in cells]
    file.write_text(yaml.safe_dump(entries))
    return f"scripted:{file}"


@pytest.fixture
def config(tmp_path):
    return RunConfig(
        task="image-segments",
        implementer=script(tmp_path, SOLVES),
        ideator="null",
        sandbox="local",
        preload=(),
    )


async def test_only_what_was_broken_off_is_gone_on_with(config, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    with pytest.raises(UsageError, match="holds no journal"):
        set_up_again(folder)
    await run_to_end(set_up(config, folder))
    with pytest.raises(UsageError, match="has come to its end: there is nothing to do"):
        set_up_again(folder)

    whole = (folder / FILE).read_bytes()
    with Journal(folder / FILE), pytest.raises(StillWritten, match="still run by another process"):
        Journal(folder / FILE)
    # killed after its end, before its results were written
    assert not lacks_results(folder)
    (folder / "summary.json").unlink()
    (folder / "solution.py").unlink()
    assert lacks_results(folder)
    assert write_all_results(folder).outcome == "finished"
    assert not lacks_results(folder)
    assert (folder / "solution.py").read_text() == SUBMITS
    assert (folder / FILE).read_bytes() == whole

    # killed in the clean re-run, while the last line was being written
    lines = whole.splitlines(keepends=True)
    rerun = next(n for n, line in enumerate(lines) if b'"rerun"' in line)
    (folder / FILE).write_bytes(b"".join(lines[: rerun + 1]) + lines[-1][:20])
    (folder / "rerun" / "left_over").mkdir()
    setup = set_up_again(folder, {"threads": 1})
    assert setup.config.threads == 1
    with Journal(folder / FILE), pytest.raises(StillWritten):
        await run_to_end(set_up_again(folder), again=True)
    assert (folder / "rerun" / "left_over").exists()
    await run_to_end(setup, again=True)
    assert not (folder / "rerun" / "left_over").exists()
    record = assert_whole(read_journal(folder))
    assert len(record.steps) == 2
    assert len(record.reruns) == 1
    assert sum(isinstance(event, Rerun) for event in read_journal(folder)) == 2
    assert json.loads((folder / "summary.json").read_text())["reproduced"]


async def test_killed_again_before_the_new_re_run_the_old_one_is_not_relied_on(go_on, recorded):
    kept = until(recorded[1], Rerun)
    again = Resumed(at_s=kept[-1].at_s, resumed_at="", sandbox=kept[0].sandbox)
    assert record_of(kept).reproduced is not None
    assert record_of([*kept, again]).reproduced is None


def start(*arguments, cwd):
    return subprocess.Popen(
        [sys.executable, "-m", "mle_ideator", *arguments],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def wait_for(found, process, patience_s=120):
    deadline = time.monotonic() + patience_s
    while not found():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def holds(folder, text, count=1):
    file = folder / FILE
    return file.exists() and file.read_text().count(text) >= count


def test_a_killed_run_on_own_data_goes_on_from_the_command_line(tmp_path):
    rows = "".join(f"{i},{i * 1.5},{i * 3}\n" for i in range(60))
    (tmp_path / "train.csv").write_text("name,x,y\n" + rows)
    (tmp_path / "test.csv").write_text("name,x\n100,3\n101,4\n")
    spec = script(tmp_path, "open('note', 'w')", "import time; time.sleep(600)", SOLVES)
    run = tmp_path / "run"
    data = ("--train", "train.csv", "--test", "test.csv", "--target", "y", "--id-column", "name")
    agents = ("--implementer", spec, "--ideator", "null", "--sandbox", "local")
    process = start(
        *("run", *data, *agents, "--set", "preload=[]", "--out", str(run)), cwd=tmp_path
    )
    wait_for(lambda: holds(run, '"type":"decided"', 2), process)
    rival = start("resume", str(run), cwd=tmp_path)
    assert "still run by another process" in rival.communicate()[1]
    assert rival.returncode == 2
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with (run / FILE).open("a") as journal:
        journal.write('{"type":"stepp')  # what a crash leaves

    script(tmp_path, "open('note', 'w')", SOLVES)
    resumed = start("resume", str(run), "--json", cwd=tmp_path)
    output, errors = resumed.communicate(timeout=300)
    assert resumed.returncode == 0, errors
    summary = json.loads(output)
    assert summary["outcome"] == "finished"
    assert summary["reproduced"]
    assert (run / "predictions.csv").read_text().splitlines()[1].startswith("100,")
    record = assert_whole(read_journal(run))
    assert [step.solution for step in record.steps] == [None, 1, None]
    assert "goes on after a break" in errors

    refused = start("resume", str(run), cwd=tmp_path)
    assert "there is nothing to do" in refused.communicate()[1]
    assert refused.returncode == 2


async def test_a_failed_session_goes_on_when_its_server_is_back(play, go_on, tmp_path, tiny_task):
    from mle_ideator.errors import AgentError

    with pytest.raises(AgentError, match="the server is gone"):
        await play(Breaks(), Answers(), folder="broken", preload=())
    failed = read_journal(tmp_path / "broken")
    assert failed[-1].outcome == "failed"
    assert not has_ended(record_of(failed))
    record = assert_whole(await go_on(failed, Plays(*CELLS), Answers()))
    assert len(record.steps) == 4
    assert record.ended.outcome == "finished"
