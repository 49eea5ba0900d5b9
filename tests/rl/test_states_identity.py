"""Two help states are one exactly if nothing that can decide what an idea does tells them apart."""

import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mle_ideator.limits import Limits
from mle_ideator.protocols import SandboxLimits
from mle_ideator.rl.states.cards import kind_of
from mle_ideator.rl.states.folders import opened_folder
from mle_ideator.rl.states.identity import identity_of, timeless
from mle_ideator.rl.states.recorded import Recorded, until_asked
from mle_ideator.types import HelpRequest, Metric, Score, Scores, Usage
from tests.rl.made_states import (
    FILES,
    IDEA,
    OTHER,
    SANDBOX,
    TASK,
    Recording,
    snapshot,
)


def identity(recording):
    events = until_asked(recording.events, "it")
    return identity_of(Recorded(events=events, listing=None, read=lambda digest: ()))


def session(idea=IDEA, **started):
    return Recording(**started).cell().solved().advised(idea).solved(0.9).asked()


SAME = {
    "slower": session(pace=7.0),
    "dearer": session(usage=Usage(3, 1000, 10, 50, 0, 0.5, 0.6, 3.0)),
    "another seed": session(config={"seed": 5}),
    "another ideator": session(config={"ideator": "vague", "ideator_options": {"a": 1}}),
    "another help policy": session(config={"help_policy": "every-3"}),
    "more steps and time": session(config={"limits": Limits(steps=99, time_s=7.0)}),
    "more threads": session(config={"threads": 7, "preload": ()}),
    "another machine": session(
        task=msgspec.structs.replace(TASK, inputs="/data", masked=(), source="copied"),
        sandbox=msgspec.structs.replace(SANDBOX, cores=64, python="3.12", libraries={}),
    ),
    "a private score": Recording()
    .cell()
    .solved(private=7.0)
    .advised()
    .solved(0.9, private=None)
    .asked(),
    "the runtime asks": Recording().cell().solved().advised().solved(0.9).asked(by="runtime"),
    "times shown": Recording().cell(text="seen").solved().advised().solved(0.9).asked(),
    "a score that differs in its last digit": Recording()
    .cell()
    .solved(1.0 + 2e-16)
    .advised()
    .solved(0.9)
    .asked(),
    "broken off and gone on with": Recording()
    .cell()
    .resumed()
    .solved()
    .advised()
    .solved(0.9)
    .asked(),
    "asked again": session().resumed().asked(),
    "asked again after the runtime asked": session().resumed().asked(by="runtime"),
    "asked again twice": session().resumed().resumed().asked(),
}

OTHERS = {
    "another idea": session(OTHER),
    "another task": session(task=msgspec.structs.replace(TASK, id="other")),
    "another description": session(task=msgspec.structs.replace(TASK, description="Predict x.")),
    "another metric": session(task=msgspec.structs.replace(TASK, metric=Metric("mae", False))),
    "more rows": session(task=msgspec.structs.replace(TASK, rows=(21, 20))),
    "other data": session(
        task=msgspec.structs.replace(TASK, baseline=Scores(public=Score(20.1, False)))
    ),
    "other private answers": session(
        task=msgspec.structs.replace(
            TASK, baseline=Scores(public=Score(20.0, False), private=Score(22.0, False))
        )
    ),
    "another implementer": session(config={"implementer": "codeact"}),
    "other options": session(config={"implementer_options": {"temperature": 0.2}}),
    "another sandbox": session(sandbox=msgspec.structs.replace(SANDBOX, kind="docker")),
    "another image": session(config={"sandbox_options": {"image": "x"}}),
    "less memory": session(config={"sandbox_limits": SandboxLimits(memory_gib=1)}),
    "shorter cells": session(config={"limits": Limits(step_time_s=5)}),
    "another selection": session(config={"selection": "public"}),
    "other code": Recording().cell("look(2)").solved().advised().solved(0.9).asked(),
    "other words": Recording().cell(thought="no").solved().advised().solved(0.9).asked(),
    "another output": Recording().cell(text="nothing").solved().advised().solved(0.9).asked(),
    "another end": Recording().cell(status="timeout").solved().advised().solved(0.9).asked(),
    "another solution": Recording().cell().solved(code="pass").advised().solved(0.9).asked(),
    "another score": Recording().cell().solved(2.0).advised().solved(0.9).asked(),
    "not the best": Recording().cell().solved().advised().solved(0.9, best=False).asked(),
    "another request": Recording()
    .cell()
    .solved()
    .advised()
    .solved(0.9)
    .asked(HelpRequest("lost", "two attempts", "more")),
    "one step more": Recording().cell().solved().advised().solved(0.9).cell().asked(),
    "gone on with after being asked again": session().resumed().advised().cell().asked(),
}


@pytest.mark.parametrize("what", SAME)
def test_what_decides_nothing_makes_no_other_state(what):
    assert identity(SAME[what]) == identity(session())


def test_what_decides_makes_another_state():
    found = {what: identity(recording) for what, recording in OTHERS.items()}
    found["as it was"] = identity(session())
    assert len(set(found.values())) == len(found)


def test_where_a_workspace_lies_and_when_it_was_written_decides_nothing(tmp_path):
    for name in ("first", "second"):
        folder = session().on(tmp_path / name)
        workspace = tmp_path / f"{name}-workspace"
        snapshot(FILES, folder / "workspace", workspace)
        time.sleep(0.01)
    with opened_folder(tmp_path / "first") as one, opened_folder(tmp_path / "second") as other:
        assert one.listing.manifest != other.listing.manifest
        assert identity_of(one) == identity_of(other)


def changed(workspace):
    """Workspaces that differ in one thing, each by its name."""
    yield "content", lambda: (workspace / "notes/deep/er.txt").write_bytes(b"KEPT")
    yield "name", lambda: (workspace / "notes/deep/er.txt").rename(workspace / "notes/deep/err")
    yield "more", lambda: (workspace / "new").touch()
    yield "folder", lambda: (workspace / "empty").mkdir()
    yield "mode", lambda: (workspace / "solution.py").chmod(0o700)
    yield "link", lambda: (workspace / "link").symlink_to("solution.py")


def test_what_the_workspace_holds_decides(tmp_path):
    folder = session().on(tmp_path / "state")
    found = {}
    for number, what in enumerate([None, *(name for name, _ in changed(tmp_path))]):
        workspace = tmp_path / f"workspace-{number}"
        kept = snapshot(FILES, tmp_path / f"snapshot-{number}", workspace)
        if what:
            dict(changed(workspace))[what]()
            kept = snapshot({}, tmp_path / f"snapshot-{number}-changed", workspace)
        (folder / "workspace").unlink(missing_ok=True)
        (folder / "workspace").symlink_to(kept)
        with opened_folder(folder) as state:
            found[what] = identity_of(state)
    assert len(set(found.values())) == len(found)


def test_what_libraries_keep_for_themselves_decides_nothing(tmp_path):
    names = ("__pycache__/a.pyc", "catboost_info/time_left.tsv", "x/.ipynb_checkpoints/n")
    found = []
    for number in (1, 2):
        folder = session().on(tmp_path / str(number))
        files = FILES | {name: f"{number} of {name}".encode() for name in names}
        snapshot(files, folder / "workspace", tmp_path / f"w{number}")
        with opened_folder(folder) as state:
            found.append(identity_of(state))
    assert found[0] == found[1]


def test_an_empty_workspace_is_none(tmp_path):
    folder = session().on(tmp_path / "state")
    with opened_folder(folder) as state:
        without = identity_of(state)
    snapshot({}, folder / "workspace", tmp_path / "workspace")
    with opened_folder(folder) as state:
        assert state.listing is not None
        assert identity_of(state) == without


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("fit in 3.21s", "fit in 12 s"),
        (
            "CPU times: user 3.1 ms, sys: 0 ns, total: 2 ms\nWall time: 3.09 ms",
            "CPU times: user 13 ms, sys: 90 ns, total: 5.5 ms\nWall time: 4 s",
        ),
        ("100%|██| 10/10 [00:03<00:00, 3.21it/s]", "100%|██| 10/10 [00:12<00:01, 1.5s/it]"),
        ("2026-11-30 14:05:57,123 INFO done", "2027-01-02 09:00:00,001 INFO done"),
        ("[14:22:11] WARNING: x", "[03:01:00] WARNING: x"),
        ("started 2026-11-30T14:05:57.123456+00:00", "started 2026-11-30T15:05:57Z"),
        ("elapsed: 12.5", "elapsed: 3"),
        ("took 0.000417 seconds", "took 1e-05 seconds"),
        ("<f at 0x7f3a10ab22c0>", "<f at 0x7fdd10ab0000>"),
        ('File "/tmp/a/run/workspace/solution.py", line 3', 'File "/home/b/w/solution.py", line 3'),
        ("Cell In[3], line 1", "Cell In[12], line 1"),
    ],
)
def test_a_shown_time_or_place_is_no_difference(one, other):
    assert timeless(one) == timeless(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Validation score: 0.5", "Validation score: 0.51"),
        ("3 sheep", "4 sheep"),
        ("missing 5%", "missing 6%"),
        ("public 0.194712; the best", "public 0.194713; the best"),
        ("line 3", "line 4"),
        ("/a/b/solution.py", "/a/b/other.py"),
        ("see https://one.org/a", "see https://two.org/a"),
        ("2 columns / 3 rows", "2 columns / 4 rows"),
    ],
)
def test_all_else_that_is_shown_is_one(one, other):
    assert timeless(one) != timeless(other)


@given(st.text(alphabet="0123456789 ms:/.-eax,Tt[]\n", max_size=300))
def test_a_timeless_text_stays_as_it_is(text):
    assert timeless(timeless(text)) == timeless(text)


@pytest.mark.parametrize("piece", ["1", "1a", "/a", "1:", "1.", "0x", "2026-", "time:", " 1 "])
def test_long_texts_take_no_long_time(piece):
    start = time.process_time()
    timeless(piece * 20_000)
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("recording", "kind"),
    [
        (Recording().asked(), "draft"),
        (Recording().cell(status="error").asked(), "draft"),
        (Recording().cell(rejected=True).asked(), "draft"),
        (Recording().solved().asked(), "improve"),
        (Recording().solved().cell(status="error").asked(), "debug"),
        (Recording().solved().cell(status="timeout").asked(), "debug"),
        (Recording().solved().cell(status="died").asked(), "debug"),
        (Recording().solved().cell(rejected=True).asked(), "debug"),
        (Recording().solved().cell(status="error").cell().asked(), "improve"),
        (Recording().solved().cell(status="error").advised().asked(), "debug"),
        (Recording().solved().cell(rejected=True).solved().asked(), "improve"),
    ],
)
def test_its_kind_is_what_it_calls_for(recording, kind):
    assert kind_of(recording.events) == kind
