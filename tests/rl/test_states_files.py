"""A help state as one file: the same bytes each time, and nothing in it is trusted."""

import hashlib
import io
import os
import random
import stat
import tarfile
import zipfile

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mle_ideator.errors import UsageError
from mle_ideator.rl.states import (
    StateStore,
    archives,
    export_state,
    import_state,
    pack_state,
    unpack_state,
)
from tests.rl.made_states import FILES, IDEA, OTHER, Recording, snapshot


def session(idea=IDEA):
    return Recording().cell().solved().advised(idea).solved(0.9).asked()


def written(home):
    """A help state on disk, with links in its workspace."""
    folder, made = session().on(home / "state"), home / "made"
    made.mkdir()
    (made / "link").symlink_to("solution.py")
    (made / "sub").mkdir()
    (made / "sub" / "up").symlink_to("../solution.py")
    snapshot(FILES, folder / "workspace", made)
    return folder


@pytest.fixture
def state(tmp_path):
    return written(tmp_path)


@pytest.fixture
def store(tmp_path):
    with StateStore(tmp_path / "states.db") as opened:
        yield opened


@pytest.fixture
def other(tmp_path):
    with StateStore(tmp_path / "elsewhere" / "other.db") as opened:
        yield opened


@pytest.fixture(scope="module")
def origin(tmp_path_factory):
    """A store with a child and its parent; the child's card, and the file that it was exported to:
    once for all."""
    home = tmp_path_factory.mktemp("origin")
    with StateStore(home / "states.db") as store:
        parent, _ = store.add(written(home))
        reached = session().resumed().asked().answered(OTHER).solved(0.8).asked()
        folder = reached.on(home / "child")
        snapshot(FILES | {"more": b"more"}, folder / "workspace", home / "made-child")
        card, _ = store.add(folder, parent=parent.id)
        export_state(store, card.id, home / "child.zip")
        yield store, card, home / "child.zip"


@pytest.fixture
def exported(origin):
    return origin[1:]


# ------------------------------------------------------------------------ out and in again


def test_a_packed_state_is_unpacked_as_it_was(store, state, tmp_path):
    identity = unpack_state(pack_state(state), tmp_path / "out")
    assert pack_state(tmp_path / "out") == pack_state(state)
    first, _ = store.add(state)
    second, new = store.add(tmp_path / "out")
    assert (second, new, first.id) == (first, False, identity)


def test_a_packed_state_may_lie_in_a_file(state, tmp_path):
    (tmp_path / "packed").write_bytes(pack_state(state))
    unpack_state(tmp_path / "packed", tmp_path / "out")
    assert (tmp_path / "out" / "workspace" / "files" / "solution.py").exists()


def test_a_packed_child_is_taken_in(store, state, tmp_path):
    parent, _ = store.add(state)
    child = session().resumed().asked().answered(OTHER).cell(status="error").asked()
    card, new = store.add_packed(pack_state(child.on(tmp_path / "child")), parent=parent.id)
    assert new
    assert (card.parent, card.depth, card.kind) == (parent.id, 1, "debug")
    assert store.add_packed(pack_state(tmp_path / "child"), parent=parent.id) == (card, False)


def test_an_exported_state_is_imported_with_its_card(origin, other, tmp_path):
    store, card, file = origin
    assert import_state(other, file) == (card, True)
    assert import_state(other, file) == (card, False)
    assert other.help_state(card.id) == store.help_state(card.id)
    store.write_to(card.id, tmp_path / "here")
    other.write_to(card.id, tmp_path / "there")
    assert pack_state(tmp_path / "here") == pack_state(tmp_path / "there")
    assert other.check() == []


def test_export_gives_the_same_bytes(origin, other, tmp_path):
    store, card, file = origin
    content = file.read_bytes()
    import_state(other, file)
    for number, each in enumerate((store, other)):
        export_state(each, card.id, tmp_path / f"{number}.zip")
        assert (tmp_path / f"{number}.zip").read_bytes() == content


def test_a_file_holds_no_private_score_of_a_solution(exported):
    _, file = exported
    with zipfile.ZipFile(file) as archive:
        journal = archive.read("journal.jsonl")
    assert b'"private":{"value":1.5' not in journal
    assert b'"private":{"value":21.0' in journal


def test_a_link_out_of_the_workspace_is_kept_among_ones_own_and_not_imported(
    store, other, tmp_path
):
    for number, target in enumerate(("/etc/passwd", "../x", "a/../../x", "./../x")):
        folder = session().on(tmp_path / f"state-{number}")
        (tmp_path / f"made-{number}").mkdir()
        (tmp_path / f"made-{number}" / "link").symlink_to(target)
        snapshot({}, folder / "workspace", tmp_path / f"made-{number}")
        card, _ = store.add_packed(pack_state(folder))
        export_state(store, card.id, tmp_path / "out.zip")
        with pytest.raises(UsageError, match="the link 'link' leads out"):
            import_state(other, tmp_path / "out.zip")
    assert other.count() == 0


# ------------------------------------------------------------------------------- rubbish


def assert_refused(other, content, tmp_path, match):
    (tmp_path / "bad.zip").write_bytes(content)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(UsageError, match=match) as raised:
        import_state(other, tmp_path / "bad.zip")
    assert "\n" not in str(raised.value)
    with pytest.raises(UsageError, match=match):
        unpack_state(content, tmp_path / "never")
    with pytest.raises(UsageError, match=match):
        other.add_packed(content)
    assert sorted(tmp_path.iterdir()) == before
    assert other.count() == 0


def test_rubbish_is_refused(other, tmp_path):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        tar.addfile(tarfile.TarInfo("journal.jsonl"))
    for content in (b"", b"rubbish" * 99, archive.getvalue()):
        assert_refused(other, content, tmp_path, "is no help state, or a damaged one")
    with pytest.raises(UsageError, match="No such file"):
        import_state(other, tmp_path / "missing.zip")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(other, exported, tmp_path, share):
    content = exported[1].read_bytes()
    assert_refused(other, content[: int(share * len(content))], tmp_path, "damaged")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 10**9), st.integers(1, 255))
def test_a_flipped_byte_is_refused_or_changes_nothing(other, exported, tmp_path, place, flip):
    card, file = exported
    content = bytearray(file.read_bytes())
    content[place % len(content)] ^= flip
    (tmp_path / "flipped.zip").write_bytes(content)
    try:
        found, _ = import_state(other, tmp_path / "flipped.zip")
    except UsageError:
        return
    assert found == card
    assert other.check() == []


def rewritten(content, changes, *, more=()):
    """An archive with some members changed (by a function of their bytes) or left out (`None`)."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        for info in old.infolist():
            change = changes.get(info.filename.partition("/")[0], lambda same: same)
            if change is not None:
                new.writestr(info.filename, change(old.read(info)))
        for info, member in more:
            new.writestr(info, member)
    return out.getvalue()


def edited(**values):
    return lambda content: msgspec.json.encode(msgspec.json.decode(content) | values)


def carded(**values):
    def change(content):
        head = msgspec.json.decode(content)
        return msgspec.json.encode(head | {"card": head["card"] | values})

    return change


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"state.json": None}, "it has no state.json"),
        ({"journal.jsonl": None}, "it has no journal.jsonl"),
        ({"workspace": None}, "it has no workspace/manifest.json"),
        ({"contents": None}, "does not hold the contents"),
        ({"state.json": lambda _: b"{}"}, "another format"),
        ({"state.json": lambda _: b"[1]"}, "damaged"),
        ({"state.json": edited(version=2)}, "version 2, which is not known here"),
        ({"state.json": edited(unknown=2)}, "unknown field"),
        ({"state.json": edited(id="0" * 64)}, "not the state that its id says"),
        ({"state.json": edited(digests=[])}, "content of each file"),
        ({"state.json": edited(digests=None)}, "does not hold the contents"),
        ({"journal.jsonl": lambda text: text[:-9]}, "journal of .* can not be read"),
        ({"journal.jsonl": lambda text: text.replace(b"ratios", b"rations")}, "its id says"),
        ({"journal.jsonl": lambda text: text + text}, "holds no help state|id says"),
        ({"journal.jsonl": lambda text: text.replace(b'"steps":9', b'"stepz":9')}, "be read"),
        ({"workspace": lambda text: text.replace(b"solution.py", b"solution.xx")}, "id says"),
        ({"contents": lambda text: text[:-1] + b"!"}, "another hash"),
    ],
)
def test_what_was_tampered_with_is_refused(other, exported, tmp_path, changes, match):
    content = rewritten(exported[1].read_bytes(), changes)
    assert_refused(other, content, tmp_path, match)


@pytest.mark.parametrize(
    "change",
    [
        {"steps": 3},
        {"kind": "draft"},
        {"score": None},
        {"id": "0" * 64},
        {"depth": -1},
        {"parent": "../up"},
    ],
)
def test_a_card_of_another_state_is_refused(other, exported, tmp_path, change):
    (tmp_path / "bad.zip").write_bytes(
        rewritten(exported[1].read_bytes(), {"state.json": carded(**change)})
    )
    with pytest.raises(UsageError, match=r"card|its id says"):
        import_state(other, tmp_path / "bad.zip")
    assert other.count() == 0


@pytest.mark.parametrize(
    "name", ["/etc/cron.d/x", "../x", "contents/../x", "workspace/files/x", "contents/ABC", "x"]
)
def test_a_member_that_does_not_belong_there_is_refused(other, exported, tmp_path, name):
    content = rewritten(exported[1].read_bytes(), {}, more=[(name, b"x")])
    assert_refused(other, content, tmp_path, "a member")


def test_members_that_are_no_files_are_refused(other, exported, tmp_path):
    for kind in (stat.S_IFLNK, stat.S_IFCHR, stat.S_IFDIR):
        info = zipfile.ZipInfo(f"contents/{'0' * 64}")
        info.external_attr = (kind | 0o777) << 16
        content = rewritten(exported[1].read_bytes(), {}, more=[(info, b"/etc/passwd")])
        assert_refused(other, content, tmp_path, "is no file")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_that_is_there_twice_is_refused(other, exported, tmp_path):
    content = rewritten(exported[1].read_bytes(), {}, more=[("journal.jsonl", b"")])
    assert_refused(other, content, tmp_path, "there twice")


def test_other_compressions_are_refused(other, exported, tmp_path):
    info = zipfile.ZipInfo(f"contents/{'0' * 64}")
    info.compress_type = zipfile.ZIP_LZMA
    content = rewritten(exported[1].read_bytes(), {}, more=[(info, b"x" * 999)])
    assert_refused(other, content, tmp_path, "not used here")


def test_a_bomb_is_refused_unread(other, exported, tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MOST_BYTES", 1 << 20)
    info = zipfile.ZipInfo(f"contents/{'0' * 64}")
    info.compress_type = zipfile.ZIP_DEFLATED
    content = rewritten(exported[1].read_bytes(), {}, more=[(info, b"\0" * (1 << 20))])
    assert len(content) < 1 << 16
    assert_refused(other, content, tmp_path, "more than")


def test_too_much_for_one_file_is_said(state, monkeypatch):
    monkeypatch.setattr(archives, "MOST_BYTES", 1 << 10)
    with pytest.raises(UsageError, match="too much for one file"):
        pack_state(state)


NOT_FOR_ITS_ID = "^(?!.*its id says).*damaged"


@pytest.mark.parametrize(
    "path",
    [
        "/etc/x",
        "../x",
        "a/../../x",
        "a//b",
        "",
        ".",
        "x\0y",
        "sub/up/x",
        "link/x",
        "solution.py",
        "€",
        "nowhere/x",
    ],
)
def test_a_manifest_leads_nowhere_else(other, exported, tmp_path, path):
    """Even if all hashes and the id are those of the manifest."""
    content = forged(exported[1].read_bytes(), path=path, kind="file", size=4)
    assert_refused(other, content, tmp_path, NOT_FOR_ITS_ID)


@pytest.mark.parametrize(
    "values",
    [
        {"mode": 0o4755},
        {"mode": 0o2755},
        {"uid": -1},
        {"gid": 2**32},
        {"size": -1},
        {"size": 5},
        {"mtime_ns": 2**63},
        {"kind": "device"},
        {"kind": "link", "target": ""},
        {"kind": "link", "target": "a\0b"},
        {"same_as": "none"},
        {"same_as": "link"},
        {"same_as": "solution.py"},
        {"kind": "folder", "unknown": 1},
    ],
)
def test_what_no_file_can_be_is_refused(other, exported, tmp_path, values):
    entry = {"path": "evil", "kind": "file", "size": 4} | values
    assert_refused(other, forged(exported[1].read_bytes(), **entry), tmp_path, NOT_FOR_ITS_ID)


def forged(content, member=True, **entry):
    """With another entry in the manifest, of the content `evil`."""
    entry = {"mode": 0o644, "uid": os.getuid(), "gid": os.getgid(), "mtime_ns": 1} | entry
    digest = hashlib.sha256(b"evil").hexdigest() if entry["kind"] == "file" else None
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        head = msgspec.json.decode(archive.read("state.json"))
        manifest = msgspec.json.decode(archive.read("workspace/manifest.json"))
    manifest["entries"].append(entry)
    changes = {
        "state.json": edited(digests=[*head["digests"], digest], card=None),
        "workspace": lambda _: msgspec.json.encode(manifest),
    }
    return rewritten(
        content, changes, more=[(f"contents/{digest}", b"evil")] if digest and member else ()
    )


def test_one_content_has_one_size(other, exported, tmp_path):
    content = forged(exported[1].read_bytes(), path="one", kind="file", size=4)
    content = forged(content, path="other", kind="file", size=5, member=False)
    assert_refused(other, content, tmp_path, "two sizes")


def test_the_forgery_itself_is_no_obstacle(other, exported, tmp_path):
    """What the tests above change is refused for the path, not for how it was forged."""
    content = forged(exported[1].read_bytes(), path="notes/good", kind="file", size=4)
    with pytest.raises(UsageError, match="not the state that its id says"):
        other.add_packed(content)


def test_random_workspaces_come_back(store, tmp_path):
    random.seed(7)
    for number in range(5):
        files = {
            f"{'d/' * random.randrange(4)}f{n}": random.randbytes(random.randrange(3000))
            for n in range(random.randrange(20))
        }
        folder = Recording().cell(str(number)).asked().on(tmp_path / str(number))
        snapshot(files, folder / "workspace", tmp_path / f"made-{number}")
        card, _ = store.add_packed(pack_state(folder))
        store.write_to(card.id, tmp_path / f"out-{number}")
        root = tmp_path / f"out-{number}" / "workspace" / "files"
        found = {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("f*")}
        assert found == files
