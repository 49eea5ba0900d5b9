"""A store keeps each help state once, wholly or not at all, whoever else adds to it."""

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import msgspec
import pytest

from mle_ideator.errors import RuntimeFailure, UsageError
from mle_ideator.journal import FILE, Asked, Rejected, Rerun, Resumed, Solved, read_journal
from mle_ideator.replay import help_state_at
from mle_ideator.rl.states import StateStore, help_request_in, pack_state
from mle_ideator.rl.states.contents import MOST_COMPRESSED
from mle_ideator.rl.states.recorded import parts_of
from mle_ideator.sandboxes.workspaces.snapshots import check_files, read_manifest
from mle_ideator.sandboxes.workspaces.tracked import TrackedWorkspace
from mle_ideator.types import HelpRequest, Score
from tests.rl.made_states import FILES, IDEA, OTHER, REQUEST, TASK, Recording, snapshot


@pytest.fixture
def store(tmp_path):
    with StateStore(tmp_path / "states.db") as opened:
        yield opened


def written(folder, recording, files=FILES):
    recording.on(folder)
    snapshot(files, folder / "workspace", folder / "made")
    return folder


def session(idea=IDEA, **started):
    return Recording(**started).cell().solved(public=1.0).advised(idea).solved(0.9).asked()


# --------------------------------------------------------------------- adding and reading


def test_what_is_put_in_comes_out(store, tmp_path):
    folder = written(tmp_path / "state", session())
    card, new = store.add(folder)
    assert new
    assert card == store.card(card.id)
    assert (card.task, card.kind, card.depth, card.parent) == ("tiny", "improve", 0, None)
    assert (card.steps, card.score) == (4, Score(0.9, False))
    assert store.help_state(card.id) == help_state_at(read_journal(folder))
    store.write_to(card.id, tmp_path / "out")
    assert help_request_in(tmp_path / "out") == REQUEST
    check_files(tmp_path / "out" / "workspace")
    workspace = TrackedWorkspace(tmp_path / "again")
    workspace.open(tmp_path / "out" / "workspace")
    workspace.close()
    assert files_of(tmp_path / "again") == FILES
    again, new = store.add(tmp_path / "out")
    assert (again, new) == (card, False)
    assert store.check() == []


def files_of(folder):
    found = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_a_workspace_is_put_back_as_it_was(store, tmp_path):
    """Links, hard links, modes, times, names of any bytes, holes, empty files and folders."""
    made = tmp_path / "made"
    (made / "sub").mkdir(parents=True)
    (made / "empty").mkdir()
    (made / "none").touch()
    (made / "run.sh").write_text("exit 0")
    (made / "run.sh").chmod(0o751)
    (made / "out").symlink_to("/etc/hostname")
    os.link(made / "run.sh", made / "sub" / "same.sh")
    odd = os.fsdecode(b"n\xc3\xa4me \xff\n")
    (made / odd).write_text("odd")
    (made / odd).chmod(0o400)
    with (made / "holes").open("wb") as file:
        file.truncate(40_000_000)
        file.seek(20_000_000)
        file.write(b"here")
    os.utime(made / "run.sh", ns=(10**18, 10**18))
    (made / "sub").chmod(0o500)
    folder = session().on(tmp_path / "state")
    snapshot({}, folder / "workspace", made)
    card, _ = store.add(folder)
    store.write_to(card.id, tmp_path / "out")
    before, after = (read_manifest(at / "workspace") for at in (folder, tmp_path / "out"))
    assert after.entries == before.entries
    assert after.as_they_were == before.as_they_were
    check_files(tmp_path / "out" / "workspace")
    files = tmp_path / "out" / "workspace" / "files"
    assert (files / "out").readlink() == Path("/etc/hostname")
    assert (files / "run.sh").stat().st_ino == (files / "sub" / "same.sh").stat().st_ino
    assert (files / "run.sh").stat().st_mtime_ns == 10**18
    assert stat.S_IMODE((files / "run.sh").stat().st_mode) == 0o751
    assert (files / odd).read_text() == "odd"
    assert (files / "holes").stat().st_size == 40_000_000
    assert (files / "holes").stat().st_blocks * 512 < 4_000_000
    assert (files / "holes").read_bytes() == (made / "holes").read_bytes()


def test_what_is_written_out_is_free_to_be_changed(store, tmp_path):
    card, _ = store.add(written(tmp_path / "state", session()))
    for name in ("one", "other"):
        store.write_to(card.id, tmp_path / name)
        path = tmp_path / name / "workspace" / "files" / "features" / "random.bin"
        path.write_bytes(b"changed")
    assert store.check() == []


def test_a_workspace_need_not_be_there(store, tmp_path):
    card, _ = store.add(Recording().asked().on(tmp_path / "state"))
    store.write_to(card.id, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == [FILE]


def test_the_same_is_kept_once_and_keeps_its_card(store, tmp_path):
    first, _ = store.add(written(tmp_path / "a", session()))
    second, new = store.add(written(tmp_path / "b", session(pace=9.0)), task="elsewhere")
    assert (second, new) == (first, False)
    _, new = store.add(written(tmp_path / "c", session(OTHER)))
    assert new
    assert store.count() == 2


def test_no_private_score_of_a_solution_is_kept(store, tmp_path):
    recording = Recording().cell(rejected=True).solved().rerun().asked()
    assert b'"private":{"value":1.5' in msgspec.json.encode(recording.events)
    card, _ = store.add(written(tmp_path / "state", recording))
    store.write_to(card.id, tmp_path / "out")
    archive = pack_state(tmp_path / "state")
    store.add_packed(archive)
    for events in (store.events(card.id), read_journal(tmp_path / "out")):
        assert [e.solution.scores.private for e in events if isinstance(e, Solved)] == [None]
        assert [e.scores.private for e in events if isinstance(e, Rerun)] == [None]
        assert [e.grade.private for e in events if isinstance(e, Rejected)] == [None]
        assert events[0].task.baseline == TASK.baseline
    shown = msgspec.json.encode(store.help_state(card.id))
    assert b"21.0" not in shown


def test_a_rollout_asks_its_parent_again_and_reaches_a_child(store, tmp_path):
    parent, _ = store.add(written(tmp_path / "parent", session()))
    again = session().resumed().asked(by="runtime")
    same, new = store.add(written(tmp_path / "again", again), parent=parent.id)
    assert (same, new) == (parent, False)
    lost = HelpRequest("lost", "", "")
    reached = session().resumed().asked(by="runtime").answered(OTHER).solved(0.8).asked(lost)
    child, new = store.add(written(tmp_path / "child", reached), parent=parent.id)
    assert new
    assert (child.parent, child.depth, child.steps) == (parent.id, 1, 6)
    assert help_request_in(tmp_path / "child") == lost
    assert store.help_state(child.id).request == lost


def test_what_a_rollout_begins_with_is_kept_once(tmp_path):
    first = session()
    second = session().resumed().asked().answered(OTHER).solved(0.8).asked()
    third = session().resumed().asked().answered(OTHER).solved(0.8).asked()
    third.resumed().asked().answered(IDEA).cell().asked()
    parts = [[list(part) for part in parts_of(each.events)] for each in (first, second, third)]
    assert parts[2][: len(parts[1])] == parts[1]
    assert parts[1][: len(parts[0])] == parts[0]
    assert [len(each) for each in parts] == [2, 3, 4]
    for each, cut in zip((first, second, third), parts, strict=True):
        assert [event for part in cut for event in part] == each.events
        assert all(isinstance(part[-1], Asked) for part in cut)
    assert isinstance(parts[1][2][0], Resumed)


def test_large_and_random_contents_are_stored_as_they_are(store, tmp_path):
    files = {
        "random": os.urandom(50_000),
        "zeros": b"\0" * (MOST_COMPRESSED + 1),
        "text": b"a" * 9999,
    }
    card, _ = store.add(written(tmp_path / "state", session(), files))
    kept = {path.name for path in (tmp_path / "states.files").rglob("*") if path.is_file()}
    listing = store.recorded(card.id).listing
    digests = dict(zip([e.path for e in listing.manifest.entries], listing.digests, strict=True))
    assert {digests["random"], digests["zeros"], f"{digests['text']}.z"} <= kept
    store.write_to(card.id, tmp_path / "out")
    assert files_of(tmp_path / "out" / "workspace" / "files") == files


# --------------------------------------------------------------------------------- finding


@pytest.fixture
def many(store, tmp_path):
    cards = []
    for number in range(40):
        task = ("a", "b")[number % 2]
        recording = Recording().cell(f"look({number})")
        if number % 4 == 0:
            recording.solved()
        cards.append(store.add(recording.asked().on(tmp_path / str(number)), task=task)[0])
    return cards


def test_cards_are_listed_in_the_order_of_adding(store, many):
    assert store.cards() == many
    assert store.cards(limit=3) == many[:3]
    assert store.cards(limit=3, after=many[2].id) == many[3:6]
    assert store.cards(task="b") == many[1::2]
    assert store.cards(task="a", kind="draft") == many[2::4]
    assert store.cards(kind="improve", after=many[4].id) == many[8::4]
    assert store.cards(task="c") == []
    assert store.count() == 40
    assert store.tasks() == {"a": 20, "b": 20}


def test_a_state_is_found_by_how_its_id_begins(store, many):
    for card in many:
        assert store.find(card.id) == card.id
        assert store.find(card.id[:20].upper()) == card.id
    first = [card.id for card in many if card.id[0] == many[0].id[0]]
    assert len(first) > 1, "change the recordings: the test needs two that begin alike"
    with pytest.raises(UsageError, match="begins several help states") as raised:
        store.find(many[0].id[0])
    assert all(f"{identity[:16]}" in str(raised.value) for identity in sorted(first)[:5])


@pytest.mark.parametrize("prefix", ["", "xyz", "%", "0" * 64, "ab cd", "f" * 65])
def test_what_begins_no_id_is_said(store, many, prefix):
    with pytest.raises(UsageError, match="there is no help state"):
        store.find(prefix)


def test_what_is_not_there_is_said(store, tmp_path):
    for call in (store.card, store.events, store.help_state, store.recorded):
        with pytest.raises(UsageError, match="there is no help state abc"):
            call("abc")
    with pytest.raises(UsageError, match="there is no help state abc"):
        store.write_to("abc", tmp_path / "out")
    with pytest.raises(UsageError, match="there is no help state abc"):
        store.cards(after="abc")
    with pytest.raises(UsageError, match="there is no help state abc"):
        store.add(session().on(tmp_path / "state"), parent="abc")


# ---------------------------------------------------------------------------------- refusing


def test_what_is_no_help_state_is_refused(store, tmp_path):
    with pytest.raises(UsageError, match="holds no journal"):
        store.add(tmp_path / "nothing")
    with pytest.raises(UsageError, match="holds no help state"):
        store.add(Recording().cell().on(tmp_path / "unasked"))
    answered = session().answered()
    with pytest.raises(UsageError, match="holds no help state"):
        store.add(answered.on(tmp_path / "answered"))
    forged = session()
    forged.events[-1] = msgspec.structs.replace(forged.events[-1], step=7)
    with pytest.raises(UsageError, match="holds no help state"):
        store.add(forged.on(tmp_path / "forged"))
    assert store.count() == 0


@pytest.mark.parametrize("damage", ["manifest", "file", "size", "version", "none"])
def test_a_damaged_snapshot_is_refused(store, tmp_path, damage):
    folder = written(tmp_path / "state", session())
    workspace = folder / "workspace"
    manifest = workspace / "manifest.json"
    match damage:
        case "manifest":
            manifest.write_bytes(manifest.read_bytes()[:-9])
        case "file":
            (workspace / "files" / "solution.py").unlink()
        case "size":
            (workspace / "files" / "solution.py").write_bytes(b"more")
        case "version":
            manifest.write_text(manifest.read_text().replace('"version":1', '"version":99'))
        case "none":
            manifest.unlink()
    with pytest.raises(UsageError, match=r"damaged|no whole snapshot|version 99"):
        store.add(folder)
    assert store.count() == 0


def test_what_is_in_the_way_is_not_overwritten(store, tmp_path):
    card, _ = store.add(written(tmp_path / "state", session()))
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine").write_text("mine")
    with pytest.raises(UsageError, match="is there already"):
        store.write_to(card.id, tmp_path / "there")
    assert (tmp_path / "there" / "mine").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    store.write_to(card.id, tmp_path / "empty")
    assert (tmp_path / "empty" / FILE).exists()


def test_another_file_is_no_store(tmp_path):
    (tmp_path / "text.db").write_text("no database " * 999)
    with pytest.raises(UsageError, match="fails as a store: file is not a database"):
        StateStore(tmp_path / "text.db")
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE mine (x)")
    other.close()
    with pytest.raises(UsageError, match="a database of something else"):
        StateStore(tmp_path / "other.db")
    StateStore(tmp_path / "later.db").close()
    later = sqlite3.connect(tmp_path / "later.db")
    later.execute("PRAGMA user_version = 99")
    later.close()
    with pytest.raises(UsageError, match="version 99"):
        StateStore(tmp_path / "later.db")
    assert not list(tmp_path.glob("text.f*")) + list(tmp_path.glob("other.f*"))
    (tmp_path / "folder.db").mkdir()
    with pytest.raises(UsageError, match="can not be opened"):
        StateStore(tmp_path / "folder.db")
    with pytest.raises(UsageError, match="can not be a store"):
        StateStore(tmp_path / "text.db" / "states.db")


def test_a_disk_that_fails_is_the_runtimes_fault(store, tmp_path):
    card, _ = store.add(written(tmp_path / "state", session()))
    (tmp_path / "file").touch()
    with pytest.raises(RuntimeFailure, match="can not be written"):
        store.write_to(card.id, tmp_path / "file" / "out")
    shutil.rmtree(tmp_path / "states.files" / "parts")
    other = session(OTHER).on(tmp_path / "other")
    with pytest.raises(RuntimeFailure, match="can not be added to"):
        store.add(other)
    assert store.count() == 1


def test_check_tells_what_is_damaged_or_lacking(store, tmp_path):
    card, _ = store.add(written(tmp_path / "a", session()))
    other, _ = store.add(written(tmp_path / "b", session(OTHER), {"a": b"only here"}))
    listing = store.recorded(other.id).listing
    (only,) = [digest for digest in listing.digests if digest]
    kept = next((tmp_path / "states.files").rglob(f"{only}*"))
    content = kept.read_bytes()
    kept.write_bytes(b"only hexe")
    (found,) = store.check()
    assert other.id[:12] in found
    assert "another hash" in found
    with pytest.raises(UsageError, match="another hash"):
        store.write_to(other.id, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".out*"))
    kept.unlink()
    (found,) = store.check()
    assert "is not in" in found
    kept.write_bytes(content)
    assert store.check() == []
    for path in (tmp_path / "states.files").rglob("*.z"):
        path.write_bytes(b"x" + path.read_bytes())
    found = store.check()
    assert len(found) == 2
    assert card.id[:12] in found[0]
    assert "is damaged" in found[0]


# -------------------------------------------------------------------------- several at once

ADDS = """
import sys
from pathlib import Path
from mle_ideator.rl.states import StateStore
from tests.rl.made_states import Recording

first, last, home = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
with StateStore(home / "states.db") as store:
    for number in range(first, last):
        recording = Recording().cell(f"look({number})").asked()
        folder = home / f"{sys.argv[4]}-{number}"
        store.add(recording.on(folder))
        print(number, flush=True)
"""


def adding(home, first, last, name):
    command = [sys.executable, "-c", ADDS, str(first), str(last), str(home), name]
    root = Path(__file__).parents[2]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root)


def test_several_processes_add_at_once(tmp_path):
    workers = [adding(tmp_path, number, number + 20, str(number)) for number in (0, 10, 20)]
    assert [worker.wait(120) for worker in workers] == [0, 0, 0]
    for worker in workers:
        worker.stdout.close()
    with StateStore(tmp_path / "states.db") as store:
        assert store.count() == 40
        assert store.check() == []


def test_several_threads_share_a_store(store, tmp_path):
    folders = [Recording().cell(f"look({n})").asked().on(tmp_path / str(n)) for n in range(30)]
    threads = [
        Thread(target=lambda start=start: [store.add(f) for f in folders[start : start + 15]])
        for start in (0, 5, 10, 15)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.count() == 30
    assert store.check() == []


def killed_once(home, number):
    """Kill a process that adds, at some moment of its work."""
    worker = adding(home, 100 * number, 100 * number + 100, "k")
    for _ in range(3):
        worker.stdout.readline()
    time.sleep(0.003 * number)
    worker.send_signal(signal.SIGKILL)
    said = worker.stdout.read().split()
    worker.stdout.close()
    worker.wait()
    return [100 * number + n for n in range(3)] + [int(number) for number in said if number]


def killed(home, times):
    said = 0
    for number in range(times):
        said += len(killed_once(home, number))
        with StateStore(home / "states.db") as store:
            assert said <= store.count() <= said + number + 1
            assert store.check() == []
    with StateStore(home / "states.db") as store:
        assert store.add(Recording().cell("after all").asked().on(home / "last"))[1]


def test_a_killed_process_leaves_whole_states(tmp_path):
    killed(tmp_path, 2)


@pytest.mark.slow
def test_many_killed_processes_leave_whole_states(tmp_path):
    killed(tmp_path, 25)


def test_what_a_killed_process_was_writing_goes_after_an_hour(tmp_path):
    StateStore(tmp_path / "states.db").close()
    parts = tmp_path / "states.files" / "parts"
    (parts / "old").touch()
    (parts / "young").touch()
    os.utime(parts / "old", (time.time() - 4000,) * 2)
    StateStore(tmp_path / "states.db").close()
    assert [path.name for path in parts.iterdir()] == ["young"]
