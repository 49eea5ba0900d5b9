"""Each help request of a run becomes a help state, however the run went."""

import re
import shutil
from pathlib import Path

import msgspec
import pytest

from mle_ideator.benchmarks.running import run_to_end, set_up
from mle_ideator.config import RunConfig
from mle_ideator.errors import UsageError
from mle_ideator.journal import FILE, Asked, read_journal
from mle_ideator.limits import Limits
from mle_ideator.protocols import SandboxRequest
from mle_ideator.replay import help_state_at
from mle_ideator.rl.rollout import roll_out
from mle_ideator.rl.states import StateStore, harvest, packed_request, unpack_state
from mle_ideator.rl.values import RolloutJob
from mle_ideator.sandboxes.local import LocalSandbox
from mle_ideator.solutions import kept_workspace
from mle_ideator.types import Execute, HelpRequest, Idea, Proposal, SeekHelp
from tests.conftest import writes_and_runs
from tests.core.test_session import HELP, Plays
from tests.rl.made_states import FILES, OTHER, Recording, snapshot

AGAIN = SeekHelp(HelpRequest("still stuck", "an idea", "anything"))
CELLS = (
    "open('note', 'w').write('first')",
    HELP,
    writes_and_runs(1),
    "open('note', 'w').write('second'); 1 / 0",
    AGAIN,
    "open('note', 'w').write('third')",
)
RECORDED = []


class Records:
    """An ideator that keeps what it was asked."""

    def __init__(self):
        self.states = []

    async def propose(self, state):
        self.states.append(state)
        return Proposal(Idea("Refine: go on.", "Blend it.", "It is robust."))


@pytest.fixture
async def run(play, folder_of_run):
    """The folder of a session with two help requests, and what its ideator saw: once for all."""
    if not RECORDED:
        ideator = Records()
        await play(Plays(*CELLS), ideator, keep_help_states=True, preload=())
        RECORDED.extend([folder_of_run, ideator.states])
    return RECORDED[0]


@pytest.fixture
def store(tmp_path):
    with StateStore(tmp_path / "states.db") as opened:
        yield opened


async def test_each_help_request_of_a_session_is_a_help_state(run, store, tmp_path):
    found = harvest(run, store)
    assert (found.known, found.problems) == ((), ())
    assert [(card.kind, card.steps, card.depth) for card in found.new] == [
        ("draft", 1, 0),
        ("debug", 4, 0),
    ]
    assert [store.help_state(card.id) for card in found.new] == RECORDED[1]
    again = harvest(run, store)
    assert (again.new, again.known) == ((), found.new)
    for card, note, code in zip(found.new, ("first", "second"), (None, 1), strict=True):
        folder = tmp_path / card.id
        store.write_to(card.id, folder)
        inputs = tmp_path / "inputs"
        inputs.mkdir(exist_ok=True)
        request = SandboxRequest(
            workspace=str(tmp_path / f"w{card.steps}"),
            inputs=str(inputs),
            preload=(),
            snapshot=str(folder / "workspace"),
            keep=(),
        )
        async with LocalSandbox(request) as sandbox:
            shown = await sandbox.execute(Execute("bash", "cat note; ls"), 60)
        assert shown.text.startswith(note)
        assert ("solution.py" in shown.text) == (code is not None)


async def test_a_run_that_goes_on_or_was_killed_is_read_as_far_as_it_got(run, store, tmp_path):
    events = read_journal(run)
    counts = []
    for until in range(1, len(events) + 1):
        folder = tmp_path / str(until)
        folder.mkdir()
        shutil.copytree(run / "help_states", folder / "help_states", symlinks=True)
        journal = b"".join(msgspec.json.encode(event) + b"\n" for event in events[:until])
        (folder / FILE).write_bytes(journal + b'{"type":"step')
        found = harvest(folder, store)
        assert found.problems == ()
        counts.append(len(found.new) + len(found.known))
    assert counts == sorted(counts)
    asked = [place for place, event in enumerate(events) if isinstance(event, Asked)]
    assert [counts.index(1), counts.index(2)] == asked
    assert store.count() == 2


def recorded_run(tmp_path, recording, *steps):
    """A run folder of a recording, with a kept workspace at some steps."""
    run = recording.on(tmp_path / "made-run")
    (run / "help_states").mkdir()
    for step in steps:
        files = FILES | {"step": str(step).encode()}
        snapshot(files, kept_workspace(run, step), tmp_path / f"workspace-{step}")
    return run


def test_what_was_broken_off_and_decided_anew_counts_as_it_was_the_last_time(store, tmp_path):
    other = HelpRequest("lost", "", "")
    recording = Recording().cell().asked().resumed().asked(other).answered(request=other)
    recording.cell().asked().resumed().cell().asked()
    run = recorded_run(tmp_path, recording, 2, 4, 5)
    found = harvest(run, store)
    assert found.problems == ()
    assert [card.steps for card in found.new] == [1, 4]
    first, second = (store.help_state(card.id) for card in found.new)
    assert first.request == other
    assert second == help_state_at(read_journal(run))
    assert [type(step.action).__name__ for step in second.situation.trajectory] == [
        "Execute",
        "SeekHelp",
        "Execute",
        "Execute",
    ]


def test_one_that_was_broken_off_last_counts(store, tmp_path):
    run = recorded_run(tmp_path, Recording().cell().asked(), 2)
    assert [card.steps for card in harvest(run, store).new] == [1]


def test_a_help_request_without_a_kept_workspace_is_told(store, tmp_path):
    recording = Recording().cell().advised().cell().advised().cell().asked()
    run = recorded_run(tmp_path, recording, 4, 6)
    (kept_workspace(run, 6) / "files" / "solution.py").unlink()
    found = harvest(run, store)
    assert [card.steps for card in found.new] == [3]
    first, second = found.problems
    assert first.startswith("step 2: its workspace was not kept")
    assert "keep_help_states" in first
    assert second.startswith("step 6: ")
    assert "no whole snapshot" in second


def test_a_request_that_no_ideator_was_asked_is_none(store, tmp_path):
    recording = Recording().cell().asked()
    del recording.events[-1]
    recording.answered(None or OTHER)
    run = recorded_run(tmp_path, recording.cell())
    assert harvest(run, store) == type(harvest(run, store))()
    with pytest.raises(UsageError, match="holds no journal"):
        harvest(tmp_path / "nothing", store)


def test_a_rollout_brings_what_it_reached_as_a_child(store, tmp_path):
    parent, _ = store.add(Recording().cell().advised().cell().asked().on(tmp_path / "parent"))
    recording = Recording().cell().advised().cell().asked().resumed().asked()
    run = recorded_run(tmp_path, recording.answered(OTHER).solved().asked(), 4, 6)
    found = harvest(run, store, parent=parent.id)
    (child,) = found.new
    assert found.problems == ()
    assert (child.parent, child.depth, child.steps) == (parent.id, 1, 5)
    unpack_state(packed_request(run, 6), tmp_path / "reached")
    assert store.add(tmp_path / "reached") == (child, False)
    grown = Recording().cell().advised().cell().asked().resumed().asked()
    grown.answered(OTHER).solved().asked().resumed().asked().answered().cell().asked()
    shutil.rmtree(run)
    run = recorded_run(tmp_path / "grown", grown, 8)
    (grandchild,) = harvest(run, store, parent=child.id).new
    assert (grandchild.parent, grandchild.depth) == (child.id, 2)


def test_one_request_is_packed_by_its_step(tmp_path, store):
    recording = Recording().cell().advised().cell().asked()
    run = recorded_run(tmp_path, recording, 2)
    assert store.add_packed(packed_request(run, 2))[0].steps == 1
    with pytest.raises(UsageError, match=r"step 1 of .* is no help request"):
        packed_request(run, 1)
    with pytest.raises(UsageError, match="its workspace was not kept"):
        packed_request(run, 4)


@pytest.mark.slow
async def test_the_same_rollout_twice_reaches_one_state(store, tmp_path):
    """With real agents and kernels: the request asked again is the same state, the child is one."""
    config = RunConfig(
        task="image-segments",
        sandbox="local",
        help_policy="every-1",
        limits=Limits(steps=2),
        keep_help_states=True,
    )
    run = tmp_path / "run"
    run.mkdir()
    await run_to_end(set_up(config, run))
    parent = harvest(run, store).new[0]
    idea = Idea("Refine: keep it.", "Train a random forest instead.", "It is robust.")
    reached = []
    for number in (1, 2):
        store.write_to(parent.id, tmp_path / f"state-{number}")
        folder = tmp_path / f"rollout-{number}" / "run"
        folder.mkdir(parents=True)
        job = RolloutJob(state=parent.id, proposal=Proposal(idea))
        await roll_out(tmp_path / f"state-{number}", job, folder)
        again = store.add_packed(packed_request(folder, parent.steps + 1), parent=parent.id)
        assert again == (parent, False)
        reached.append(harvest(folder, store, parent=parent.id))
    (child,) = reached[0].new
    assert child.depth == 1
    assert (reached[1].new, reached[1].known) == ((), (child,))


def test_the_page_on_help_states_does_what_it_says(tmp_path, monkeypatch, capsys):
    page = (Path(__file__).parents[2] / "docs" / "help_states.md").read_text()
    (snippet,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    recorded_run(tmp_path, Recording().cell().solved().asked(), 3)
    (tmp_path / "runs").mkdir()
    (tmp_path / "made-run").rename(tmp_path / "runs" / "image-segments")
    monkeypatch.chdir(tmp_path)
    exec(snippet, {})
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first.endswith("tiny improve 0 1")
    assert last == "[]"
    assert (tmp_path / "state" / FILE).exists()
    with StateStore(tmp_path / "elsewhere.db") as other:
        assert other.count() == 1
