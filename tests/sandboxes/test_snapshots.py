"""Workspaces kept, put back and opened from snapshots, on file systems of each kind."""

from __future__ import annotations

import json
import mmap
import os
import random
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mle_ideator.errors import SandboxError
from mle_ideator.sandboxes.workspaces.copying import copy_file, wait_for_the_next_tick
from mle_ideator.sandboxes.workspaces.overlay import remove_leftovers
from mle_ideator.sandboxes.workspaces.tracked import TrackedWorkspace
from tests.sandboxes.test_trees import NESTED, as_a_user

ROOT = os.geteuid() == 0
STRATEGIES = ("overlay", "reflink", "copy")


def mounted(*command: str) -> None:
    done = subprocess.run(["mount", *command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"mount {' '.join(command)}: {done.stderr.strip()}")


@pytest.fixture(scope="module", params=STRATEGIES)
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, str]]:
    """A folder on a file system where workspaces are opened by this strategy."""
    folder, strategy = tmp_path_factory.mktemp("place"), request.param
    if strategy == "copy" and not ROOT:
        yield folder, strategy
        return
    if not ROOT:
        pytest.skip("only root may mount")
    if strategy == "overlay":
        yield folder, strategy
        return
    point = folder / "point"
    point.mkdir()
    if strategy == "reflink":
        if shutil.which("mkfs.btrfs") is None:
            pytest.skip("mkfs.btrfs is not installed")
        image = folder / "image"
        with image.open("wb") as file:
            file.truncate(512 << 20)
        subprocess.run(["mkfs.btrfs", "-q", str(image)], check=True)
        mounted("-o", "loop", str(image), str(point))
    else:  # an overlay can not be laid over an overlay
        for name in ("lower", "upper", "work"):
            (folder / name).mkdir()
        layers = [f"{name}dir={folder / name}" for name in ("lower", "upper", "work")]
        mounted("-t", "overlay", "-o", ",".join(layers), "test", str(point))
    try:
        yield point, strategy
    finally:
        subprocess.run(["umount", str(point)], check=True)


class Box:
    """Workspaces and snapshots that a test makes, closed and checked at its end."""

    def __init__(self, folder: Path, strategy: str) -> None:
        self.folder, self.strategy = folder, strategy
        self.opened: list[TrackedWorkspace] = []

    def path(self, name: str) -> Path:
        return self.folder / name

    def open(self, name: str, snapshot: str | None = None) -> TrackedWorkspace:
        workspace = TrackedWorkspace(self.path(name))
        self.opened.append(workspace)
        workspace.open(snapshot and self.path(snapshot))
        assert workspace.strategy == (self.strategy if snapshot else "plain")
        return workspace


@pytest.fixture
def box(place: tuple[Path, str], request: pytest.FixtureRequest) -> Iterator[Box]:
    folder, strategy = place
    own = folder / str(abs(hash(request.node.nodeid)))
    own.mkdir()
    box = Box(own, strategy)
    descriptors, mounts = open_descriptors(), mounts_below(own)
    try:
        yield box
    finally:
        for workspace in box.opened:
            workspace.close()
    assert mounts_below(own) == mounts
    assert open_descriptors() == descriptors
    assert not [name for name in os.listdir(own) if name.startswith(".")]  # noqa: PTH208


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def mounts_below(folder: Path) -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    return [line for line in lines if f" {folder}/" in line]


def files(folder: Path) -> Path:
    return folder / "files"


def tree(folder: Path, *, apart: str = "input") -> dict[str, tuple[object, ...]]:
    """All that is in a folder."""
    found: dict[str, tuple[object, ...]] = {}
    for base, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(base, name)
            status = path.lstat()
            owner = (status.st_uid, status.st_gid)
            relative = str(path.relative_to(folder))
            if stat.S_ISLNK(status.st_mode):
                found[relative] = ("link", *owner, str(path.readlink()))
            elif stat.S_ISDIR(status.st_mode):
                found[relative] = ("folder", *owner, stat.S_IMODE(status.st_mode))
            else:
                content = path.read_bytes() if stat.S_ISREG(status.st_mode) else None
                facts = (stat.S_IMODE(status.st_mode), int(status.st_mtime), content)
                found[relative] = ("file", *owner, *facts)
    return {path: facts for path, facts in found.items() if path.split("/")[0] != apart}


def fill(folder: Path) -> None:
    """Ordinary things and odd ones."""
    (folder / "input").mkdir(exist_ok=True)
    (folder / "input" / "train.csv").write_text("not mine\n")
    (folder / "solution.py").write_text("print(1)\n")
    (folder / "models" / "old").mkdir(parents=True)
    (folder / "models" / "a.bin").write_bytes(os.urandom(300_000))
    (folder / "models" / "old" / "b.bin").write_bytes(b"b" * 5000)
    (folder / "empty").mkdir()
    (folder / "none").touch()
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o751)
    (folder / "closed").mkdir()
    (folder / "closed" / "secret").write_text("x")
    (folder / "closed" / "secret").chmod(0)
    (folder / "closed").chmod(0o500)
    (folder / "out").symlink_to("/etc/passwd")
    (folder / "up").symlink_to("../../..")
    (folder / "dangling").symlink_to("nowhere")
    (folder / "ünï").write_text("names")
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff\xfe \n\\")).write_text("of bytes")
    Path(os.fsdecode(os.fsencode(folder) + b"/link\xff")).symlink_to(os.fsdecode(b"to\xff"))
    os.utime(folder / "solution.py", (1_000_000_000, 1_000_000_000))
    if ROOT:
        for path in (folder / "models", folder / "models" / "a.bin", folder / "up"):
            os.lchown(path, 60_900, 60_901)


def reference(box: Box, name: str = "first") -> TrackedWorkspace:
    """Written a while ago: what was written just now is not known to be as it was."""
    workspace = box.open(name)
    fill(box.path(name))
    time.sleep(0.03)
    return workspace


# --------------------------------------------------------------------------- the same again


def test_what_is_opened_is_what_was_kept(box):
    reference(box).snapshot(box.path("kept"))
    box.open("second", "kept")
    assert tree(box.path("second")) == tree(box.path("first"))
    assert not (box.path("second") / "input").exists()
    assert not (files(box.path("kept")) / "input").exists()


def test_what_is_put_back_is_what_was_kept(box):
    workspace = reference(box)
    workspace.snapshot(box.path("kept"))
    folder, before = box.path("first"), tree(box.path("first"))
    change_everything(folder)
    workspace.restore(box.path("kept"))
    assert tree(folder) == before
    assert (folder / "input" / "train.csv").read_text() == "not mine\n"


def change_everything(folder: Path) -> None:
    with (folder / "models" / "a.bin").open("r+b") as file:
        file.write(b"in place")
    (folder / "solution.py").unlink()
    (folder / "run.sh").chmod(0o600)
    (folder / "closed").chmod(0o777)
    (folder / "closed" / "more").write_text("more")
    (folder / "ünï").rename(folder / "moved")
    (folder / "none").unlink()
    (folder / "none").mkdir()
    (folder / "none" / "file").write_text("a folder now")
    (folder / "empty").rmdir()
    (folder / "empty").write_text("a file now")
    (folder / "out").unlink()
    (folder / "out").symlink_to("/etc/shadow")
    (folder / "models" / "old").rename(folder / "older")
    os.mkfifo(folder / "fifo")
    (folder / "new" / "er").mkdir(parents=True)
    (folder / "new" / "er" / "file").write_text("new")
    (folder / "new" / "er").chmod(0)


def test_one_opened_from_a_snapshot_is_kept_and_put_back_as_well(box):
    reference(box).snapshot(box.path("kept"))
    before = tree(box.path("first"))
    second = box.open("second", "kept")
    folder = box.path("second")
    fill_again = folder / "input"
    fill_again.mkdir()
    (fill_again / "train.csv").write_text("mine\n")
    change_everything(folder)
    (folder / "fifo").unlink()
    changed = tree(folder)
    second.snapshot(box.path("later"))
    box.open("third", "later")
    assert tree(box.path("third")) == changed
    second.restore(box.path("kept"))
    assert tree(folder) == before
    second.restore(box.path("later"))
    assert tree(folder) == changed
    second.close()
    assert tree(folder) == changed
    assert (fill_again / "train.csv").read_text() == "mine\n"
    assert tree(files(box.path("kept"))) == before


def test_random_histories_are_kept_and_put_back(box):
    for seed in range(6):
        chance = random.Random(seed)
        start = f"start-{seed}"
        workspace = box.open(f"w-{seed}")
        fill(box.path(f"w-{seed}"))
        workspace.snapshot(box.path(start))
        kept = {start: tree(box.path(f"w-{seed}"))}
        second = box.open(f"v-{seed}", start)
        for number in range(25):
            act(chance, box.path(f"v-{seed}"))
            if number % 3 == 0:
                name = f"s-{seed}-{number}"
                kept[name] = tree(box.path(f"v-{seed}"))
                second.snapshot(box.path(name))
            if number % 5 == 4:
                name = chance.choice(sorted(kept))
                second.restore(box.path(name))
                assert tree(box.path(f"v-{seed}")) == kept[name], (seed, number)
        for name, content in kept.items():
            assert tree(files(box.path(name))) == content, (seed, name)
        last = tree(box.path(f"v-{seed}"))
        second.close()
        assert tree(box.path(f"v-{seed}")) == last, seed


def act(chance: random.Random, folder: Path) -> None:
    """Something that agent code may do."""
    paths = sorted(p for p in folder.rglob("*") if not p.is_relative_to(folder / "input"))
    plain = [p for p in paths if p.is_file() and not p.is_symlink()]
    folders = [folder, *(p for p in paths if p.is_dir() and not p.is_symlink())]
    new = chance.choice(folders) / f"n{chance.randrange(40)}"
    match chance.randrange(9):
        case 0 if not os.path.lexists(new):
            new.mkdir()
        case 1 if not new.is_dir():
            new.write_bytes(chance.randbytes(chance.randrange(10_000)))
        case 2:
            chance.choice(plain).chmod(chance.choice([0o600, 0o644, 0o755]))
        case 3:
            with chance.choice(plain).open("ab") as file:
                file.write(b"more")
        case 4:
            chance.choice(plain).unlink()
        case 5 if not os.path.lexists(new):
            moved = chance.choice(paths)
            if not new.is_relative_to(moved):
                moved.rename(new)
        case 6:
            if len(folders) > 1 and chance.random() < 0.3:
                shutil.rmtree(chance.choice(folders[1:]))
        case 7 if not os.path.lexists(new):
            new.symlink_to(chance.choice(["/etc/passwd", "..", "solution.py"]))
        case 8:
            chance.choice(folders[1:] or [folder]).chmod(chance.choice([0o700, 0o755]))


# ----------------------------------------------------------------- only what has changed


def inodes(folder: Path) -> dict[str, int]:
    found = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): path.lstat().st_ino for path in found}


def touched(folder: Path, before: dict[str, tuple[int, int]]) -> set[str]:
    return {path for path, mark in marks(folder).items() if mark != before.get(path)}


def marks(folder: Path) -> dict[str, tuple[int, int]]:
    """Numbers of files are given again, so these alone do not tell that one was replaced."""
    found = inodes(folder)
    return {path: (inode, (folder / path).lstat().st_ctime_ns) for path, inode in found.items()}


def test_snapshots_share_what_has_not_changed(box):
    workspace = reference(box)
    workspace.snapshot(box.path("one"))
    (box.path("first") / "models" / "a.bin").write_bytes(b"changed")
    (box.path("first") / "run.sh").chmod(0o700)
    workspace.snapshot(box.path("two"))
    one, two = inodes(files(box.path("one"))), inodes(files(box.path("two")))
    assert {path for path in one if one[path] != two[path]} == {"models/a.bin", "run.sh"}
    assert (files(box.path("one")) / "run.sh").stat().st_mode & 0o777 == 0o751
    assert (files(box.path("two")) / "run.sh").stat().st_mode & 0o777 == 0o700


def test_what_was_opened_shares_with_its_snapshot_and_among_its_own(box):
    reference(box).snapshot(box.path("one"))
    second = box.open("second", "one")
    (box.path("second") / "new").write_text("new")
    (box.path("second") / "folder").mkdir()
    (box.path("second") / "folder" / "in").write_text("in a new folder")
    (box.path("second") / "solution.py").write_text("print(2)\n")
    time.sleep(0.05)
    second.snapshot(box.path("two"))
    (box.path("second") / "run.sh").unlink()
    second.snapshot(box.path("three"))
    one, two, three = (inodes(files(box.path(name))) for name in ("one", "two", "three"))
    assert {path for path in two if one.get(path) != two[path]} == {
        *("new", "folder/in", "solution.py")
    }
    assert three == {path: inode for path, inode in two.items() if path != "run.sh"}


def test_restoring_leaves_alone_what_has_not_changed(box):
    reference(box).snapshot(box.path("one"))
    for name, snapshot in (("first", None), ("second", "one")):
        workspace = box.opened[0] if snapshot is None else box.open(name, snapshot)
        folder = box.path(name)
        before = marks(folder)
        (folder / "models" / "a.bin").write_bytes(b"changed")
        (folder / "models" / "old" / "b.bin").touch()
        workspace.restore(box.path("one"))
        assert touched(folder, before) == {"models/a.bin", "models/old/b.bin"}
        assert (folder / "models" / "a.bin").read_bytes() != b"changed"


def test_restoring_another_snapshot_leaves_alone_what_both_have(box):
    workspace = reference(box)
    folder = box.path("first")
    workspace.snapshot(box.path("one"))
    (folder / "solution.py").write_text("print(2)\n")
    time.sleep(0.03)
    workspace.snapshot(box.path("two"))
    before = marks(folder)
    workspace.restore(box.path("one"))
    assert touched(folder, before) == {"solution.py"}
    assert (folder / "solution.py").read_text() == "print(1)\n"


def times_set_back(path: Path) -> None:
    """Another content of the same size, with the old times."""
    status = path.stat()
    with path.open("r+b") as file:
        file.write(b"PRINT")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def moved_over(path: Path) -> None:
    status = path.stat()
    other = path.with_name("other")
    other.write_bytes(b"PRINT" + path.read_bytes()[5:])
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.rename(path)


@pytest.mark.parametrize("change", [times_set_back, moved_over])
def test_no_change_is_hidden_by_setting_times(box, change: Callable[[Path], None]):
    workspace = reference(box)
    path = box.path("first") / "solution.py"
    workspace.snapshot(box.path("one"))
    change(path)
    workspace.snapshot(box.path("two"))
    assert (files(box.path("two")) / "solution.py").read_bytes().startswith(b"PRINT")
    change(path)
    workspace.restore(box.path("one"))
    assert path.read_bytes() == b"print(1)\n"


def test_no_change_is_missed_that_comes_at_once(box):
    workspace = reference(box)
    path = box.path("first") / "solution.py"
    for number in range(60):
        content = f"print({number:03})\n"
        path.write_text(content)
        workspace.snapshot(box.path(f"s{number}"))
        assert (files(box.path(f"s{number}")) / "solution.py").read_text() == content
    for number in range(0, 60, 7):
        path.write_text("print(abc)\n")
        workspace.restore(box.path(f"s{number}"))
        assert path.read_text() == f"print({number:03})\n"


def test_what_was_written_just_now_is_not_taken_for_known(tmp_path):
    """The next write could leave the same time of change."""
    source = os.open(tmp_path, os.O_RDONLY)
    distrusted = 0
    for number in range(40):
        (tmp_path / "file").write_text(f"{number}")
        distrusted += copy_file("file", source, f"copy-{number}", source).signature is None
    assert distrusted > 0
    wait_for_the_next_tick()
    assert copy_file("file", source, "copy", source).signature is not None
    os.close(source)


def test_no_change_is_missed_that_is_made_through_a_mapping(box):
    """Times are set at the first write to a page, not at the next ones."""
    reference(box).snapshot(box.path("kept"))
    for name, workspace in (("first", box.opened[0]), ("second", box.open("second", "kept"))):
        path = box.path(name) / "models" / "a.bin"
        with path.open("r+b") as file:
            mapped = mmap.mmap(file.fileno(), 0)
        for number in range(4):
            mapped[0:4] = f"{number:04}".encode()
            time.sleep(0.02)
            kept = box.path(f"{name}-{number}")
            workspace.snapshot(kept)
            assert (files(kept) / "models" / "a.bin").read_bytes()[:4] == f"{number:04}".encode()
        mapped.close()


# ------------------------------------------------------------------------ many from one


def test_many_workspaces_from_one_snapshot_do_not_see_each_other(box):
    reference(box).snapshot(box.path("kept"))
    before, raw = tree(box.path("first")), tree(files(box.path("kept")))
    for number in range(8):
        box.open(f"w{number}", "kept")
    first = box.path("w0")
    with (first / "models" / "a.bin").open("ab") as file:
        file.write(b"more")
    with (first / "models" / "old" / "b.bin").open("r+b") as file:
        file.write(b"in place")
    (first / "run.sh").chmod(0o777)
    (first / "solution.py").rename(first / "renamed.py")
    (first / "ünï").unlink()
    shutil.rmtree(first / "closed")
    (first / "new").write_text("new")
    if ROOT:
        os.lchown(first / "empty", 7, 7)
    for number in range(1, 8):
        assert tree(box.path(f"w{number}")) == before
    assert tree(files(box.path("kept"))) == raw
    box.opened[1].restore(box.path("kept"))
    assert tree(box.path("w0")) == before


def test_many_threads_open_change_keep_and_close_at_once(box):
    reference(box).snapshot(box.path("kept"))
    before = tree(box.path("first"))

    def rollout(number: int) -> tuple[dict[str, tuple[object, ...]], ...]:
        folder = box.path(f"w{number}")
        workspace = TrackedWorkspace(folder)
        workspace.open(box.path("kept"))
        change_everything(folder)
        (folder / "fifo").unlink()
        (folder / "solution.py").write_text(f"print({number})\n")
        changed = tree(folder)
        workspace.snapshot(box.path(f"s{number}"))
        workspace.restore(box.path("kept"))
        restored = tree(folder)
        workspace.restore(box.path(f"s{number}"))
        workspace.close()
        return changed, tree(folder), restored

    with ThreadPoolExecutor(8) as pool:
        for changed, closed, restored in pool.map(rollout, range(16)):
            assert closed == changed
            assert restored == before
    assert tree(files(box.path("kept"))) == before


def test_no_file_of_a_workspace_is_one_of_a_snapshot(box):
    """A link would let agent code write to the snapshot."""
    workspace = reference(box)
    workspace.snapshot(box.path("kept"))
    (box.path("first") / "solution.py").write_text("print(2)\n")
    workspace.restore(box.path("kept"))
    box.open("second", "kept").close()
    store = {(p.lstat().st_dev, p.lstat().st_ino) for p in files(box.path("kept")).rglob("*")}
    for name in ("first", "second"):
        for path in box.path(name).rglob("*"):
            assert (path.lstat().st_dev, path.lstat().st_ino) not in store


# --------------------------------------------------------------------------- odd contents


def test_hard_links_are_stored_once_and_stay_apart_from_others(box):
    workspace = reference(box)
    folder = box.path("first")
    other = box.path("other")
    other.write_text("not of the workspace")
    os.link(other, folder / "linked")
    for name in ("x", "y"):
        os.link(folder / "models" / "a.bin", folder / f"a-{name}")
    workspace.snapshot(box.path("kept"))
    stored = inodes(files(box.path("kept")))
    assert stored["a-x"] == stored["a-y"] == stored["models/a.bin"]
    (folder / "linked").write_text("written by the agent")
    workspace.restore(box.path("kept"))
    assert (folder / "linked").read_text() == "not of the workspace"
    assert other.read_text() == "written by the agent"
    box.open("second", "kept")
    assert tree(box.path("second")) == tree(folder)
    box.opened[1].snapshot(box.path("again"))
    assert tree(files(box.path("again"))) == tree(folder)


def test_holes_stay_holes(box):
    workspace = reference(box)
    huge = box.path("first") / "huge"
    with huge.open("wb") as file:
        file.seek(30 << 30)
        file.write(b"end")
        file.truncate(40 << 30)
    started = time.monotonic()
    workspace.snapshot(box.path("kept"))
    box.open("second", "kept")
    workspace.restore(box.path("kept"))
    assert time.monotonic() - started < 20
    for path in (files(box.path("kept")) / "huge", box.path("second") / "huge"):
        assert path.stat().st_size == 40 << 30
        assert path.stat().st_blocks < 1000
        with path.open("rb") as file:
            file.seek(30 << 30)
            assert file.read(4) == b"end\0"
    huge.unlink()
    (box.path("second") / "huge").unlink()  # or comparing would read it


def test_what_is_no_file_is_left_out_and_named(box):
    workspace = reference(box)
    folder = box.path("first")
    before = tree(folder)
    os.mkfifo(folder / "fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        descriptor = os.open(folder, os.O_PATH)
        listening.bind(f"/proc/self/fd/{descriptor}/socket")
        os.close(descriptor)
    if ROOT:
        os.mknod(folder / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    workspace.snapshot(box.path("kept"))
    manifest = json.loads((box.path("kept") / "manifest.json").read_text())
    left_out = {entry["path"]: entry["why"] for entry in manifest["left_out"]}
    devices = {"null": "device"} if ROOT else {}
    assert left_out == {"fifo": "named pipe", "socket": "socket"} | devices
    box.open("second", "kept")
    assert tree(box.path("second")) == before
    workspace.restore(box.path("kept"))
    assert tree(folder) == before


def test_links_are_never_followed(box):
    outside = box.path("outside")
    outside.mkdir()
    (outside / "file").write_text("kept")
    workspace = box.open("first")
    folder = box.path("first")
    (folder / "data").mkdir()
    (folder / "data" / "file").write_text("mine")
    workspace.snapshot(box.path("kept"))
    shutil.rmtree(folder / "data")
    (folder / "data").symlink_to(outside)
    workspace.snapshot(box.path("linked"))
    assert (files(box.path("linked")) / "data").readlink() == outside
    workspace.restore(box.path("kept"))
    assert (outside / "file").read_text() == "kept"
    assert (folder / "data" / "file").read_text() == "mine"


def test_deep_folders_and_long_paths(box):
    workspace = reference(box)
    folder = box.path("first")
    shallow = folder / "/".join("d" * 100)
    shallow.mkdir(parents=True)
    (shallow / "file").write_text("deep")
    (shallow / "closed").mkdir()
    before = tree(folder)
    nested = folder / "nested"
    nested.mkdir()
    as_a_user(NESTED, str(nested))
    workspace.snapshot(box.path("kept"))
    manifest = json.loads((box.path("kept") / "manifest.json").read_text())
    assert [left["why"] for left in manifest["left_out"]] == ["path too long"]
    box.open("second", "kept")
    assert (box.path("second") / shallow.relative_to(folder) / "file").read_text() == "deep"
    workspace.restore(box.path("kept"))
    box.opened[1].close()
    for name in ("first", "second"):
        subprocess.run(["rm", "-rf", str(box.path(name) / "nested")], check=True)
        assert tree(box.path(name)) == before


def test_rights_that_programs_gain_are_not_kept(box):
    workspace = reference(box)
    (box.path("first") / "run.sh").chmod(0o6755)
    workspace.snapshot(box.path("kept"))
    box.open("second", "kept")
    assert stat.S_IMODE((box.path("second") / "run.sh").stat().st_mode) == 0o755


def test_files_that_change_while_they_are_kept(box):
    workspace = box.open("first")
    folder, stop = box.path("first"), threading.Event()
    for number in range(50):
        (folder / f"f{number}").write_bytes(os.urandom(100_000))

    def disturb() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            with (folder / "growing").open("ab") as file:
                file.write(b"x" * 10_000)
            shutil.rmtree(folder / "folder", ignore_errors=True)
            (folder / "folder" / "in").mkdir(parents=True)
            (folder / "folder" / "in" / "file").write_text("x")
            (folder / f"f{number % 50}").unlink(missing_ok=True)
            (folder / f"f{number % 50}").write_text(f"{number}")

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for number in range(15):
            workspace.snapshot(box.path(f"s{number}"))
    finally:
        stop.set()
        thread.join()
    workspace.snapshot(box.path("last"))
    assert tree(files(box.path("last"))) == tree(folder)
    for number in range(15):
        box.open(f"w{number}", f"s{number}")


# ---------------------------------------------------------------------- its end, and killings


def test_closing_leaves_plain_files(box):
    reference(box).snapshot(box.path("kept"))
    before = tree(box.path("first"))
    second = box.open("second", "kept")
    (box.path("second") / "submission.csv").write_text("id,target\n")
    second.close()
    second.close()
    (box.path("second") / "submission.csv").unlink()
    assert tree(box.path("second")) == before
    assert not mounts_below(box.folder)


def test_closing_keeps_folders_that_were_moved(box):
    reference(box).snapshot(box.path("kept"))
    second, folder = box.open("second", "kept"), box.path("second")
    (folder / "models").rename(folder / "moved")
    (folder / "moved" / "old").rename(folder / "moved" / "older")
    (folder / "moved" / "more").write_text("more")
    (folder / "models").mkdir()
    (folder / "models" / "a.bin").write_text("another")
    expected = tree(folder)
    second.snapshot(box.path("later"))
    assert tree(files(box.path("later"))) == expected
    second.close()
    assert tree(folder) == expected


def test_closing_can_leave_only_what_is_wanted(box):
    reference(box).snapshot(box.path("kept"))
    second = box.open("second", "kept")
    folder = box.path("second")
    (folder / "submission.csv").write_text("id,target\n")
    second.close(keep=("solution.py", "submission.csv", "missing"))
    assert (folder / "solution.py").read_text() == "print(1)\n"
    assert (folder / "submission.csv").read_text() == "id,target\n"
    if box.strategy == "overlay":
        assert sorted(os.listdir(folder)) == ["solution.py", "submission.csv"]  # noqa: PTH208


def test_what_is_apart_may_be_there_before(box):
    reference(box).snapshot(box.path("kept"))
    folder = box.path("second")
    (folder / "input").mkdir(parents=True)
    (folder / "input" / "train.csv").write_text("given")
    second = box.open("second", "kept")
    assert tree(folder) == tree(box.path("first"))
    assert (folder / "input" / "train.csv").read_text() == "given"
    second.restore(box.path("kept"))
    second.close()
    assert (folder / "input" / "train.csv").read_text() == "given"


KILLED = """
import os, sys, time
from pathlib import Path
from mle_ideator.sandboxes.workspaces.tracked import TrackedWorkspace
workspace = TrackedWorkspace(Path(sys.argv[1]))
workspace.open(Path(sys.argv[2]) if sys.argv[2] else None)
print('opened', flush=True)
number = 0
while sys.argv[3]:
    number += 1
    workspace.snapshot(Path(f'{sys.argv[3]}{number}'))
time.sleep(60)
"""


def killed(*arguments: str, after_s: float) -> None:
    command = [sys.executable, "-c", KILLED, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "opened\n"
        time.sleep(after_s)
        process.send_signal(signal.SIGKILL)


def test_a_kill_leaves_no_half_snapshot(box):
    folder = box.path("first")
    folder.mkdir()
    fill(folder)
    for number in range(300):
        (folder / f"f{number}").write_bytes(b"x" * 10_000)
    for attempt in range(4):
        killed(str(folder), "", str(box.path(f"k{attempt}-")), after_s=0.05 + 0.03 * attempt)
    workspace = box.open("first")
    workspace.snapshot(box.path("last"))
    expected = tree(folder)
    snapshots = [path for path in box.folder.iterdir() if path.name.startswith(("k", "last"))]
    for snapshot in snapshots:
        assert tree(files(snapshot)) == expected
        box.open(f"of-{snapshot.name}", snapshot.name)


def test_what_a_killed_runtime_mounted_is_unmounted(box):
    if box.strategy != "overlay":
        pytest.skip("nothing is mounted")
    reference(box).snapshot(box.path("kept"))
    alive = box.open("alive", "kept")
    killed(str(box.path("second")), str(box.path("kept")), "", after_s=0)
    assert len(mounts_below(box.folder)) == 2
    remove_leftovers()
    assert len(mounts_below(box.folder)) == 1
    assert tree(box.path("alive")) == tree(box.path("first"))
    box.open("second", "kept")
    alive.close()


def test_snapshots_outlive_each_other_and_may_be_moved(box):
    workspace = reference(box)
    workspace.snapshot(box.path("one"))
    before = tree(box.path("first"))
    box.path("elsewhere").mkdir()
    box.path("one").rename(box.path("elsewhere") / "moved")
    workspace.snapshot(box.path("two"))
    shutil.rmtree(box.path("elsewhere"))
    workspace.snapshot(box.path("three"))
    shutil.rmtree(box.path("three"))
    workspace.snapshot(box.path("three"))  # of the same name as what it would link to
    for name in ("two", "three"):
        assert tree(files(box.path(name))) == before
        box.open(f"of-{name}", name)
        assert tree(box.path(f"of-{name}")) == before


def test_nothing_leaks(box):
    reference(box).snapshot(box.path("kept"))
    box.open("again", "kept").close()
    before = open_descriptors()
    for number in range(30):
        workspace = box.open("again" if number % 2 else f"w{number}", None)
        workspace.close()
        shutil.rmtree(box.path("again"), ignore_errors=True)
        workspace = box.open("again", "kept")
        workspace.snapshot(box.path(f"s{number}"))
        workspace.restore(box.path("kept"))
        workspace.close()
    assert open_descriptors() == before


# ------------------------------------------------------------------------------ refusals


def test_what_is_no_snapshot_is_refused_in_one_line(tmp_path):
    (tmp_path / "file").write_text("x")
    for name in ("missing", "file", "."):
        with pytest.raises(SandboxError, match=r"\A[^\n]*is no snapshot of a workspace[^\n]*\Z"):
            TrackedWorkspace(tmp_path / "w").open(tmp_path / name)


def damaged(change: Callable[[Path], None], tmp_path: Path) -> None:
    workspace = TrackedWorkspace(tmp_path / "first")
    workspace.open(None)
    fill(tmp_path / "first")
    workspace.snapshot(tmp_path / "kept")
    change(tmp_path / "kept")
    workspace.close()
    TrackedWorkspace(tmp_path / "second").open(tmp_path / "kept")


def edited(old: str, new: str) -> Callable[[Path], None]:
    def edit(snapshot: Path) -> None:
        text = (snapshot / "manifest.json").read_text()
        assert old in text
        (snapshot / "manifest.json").write_text(text.replace(old, new))

    return edit


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (edited('"version":1', '"version":99'), "version 99, which is not known"),
        (edited('"solution.py"', '"../solution.py"'), "damaged: a path"),
        (edited('"solution.py"', '"/etc/passwd"'), "damaged: a path"),
        (edited('"solution.py"', '"sol\\u0000"'), "damaged: a path"),
        (edited('"solution.py"', '"sol\\u1234"'), "damaged: its manifest"),
        (edited('"kind":"file"', '"kind":"door"'), "damaged: its manifest"),
        (lambda s: os.truncate(s / "manifest.json", 200), "damaged: its manifest"),
        (lambda s: os.truncate(s / "manifest.json", 0), "damaged: its manifest"),
        (lambda s: (s / "files" / "solution.py").unlink(), "'solution.py' is missing"),
        (lambda s: os.truncate(s / "files" / "models" / "a.bin", 9), "of another size"),
        (lambda s: (s / "files").rename(s / "moved"), "can not be opened"),
    ],
)
def test_a_damaged_snapshot_is_refused_in_one_line(tmp_path, change, words):
    with pytest.raises(SandboxError, match=rf"\A[^\n]*{words}[^\n]*\Z"):
        damaged(change, tmp_path)
    assert not mounts_below(tmp_path)


def test_a_snapshot_is_never_written_over(box):
    workspace = reference(box)
    workspace.snapshot(box.path("kept"))
    before = tree(files(box.path("kept")))
    (box.path("first") / "solution.py").write_text("other")
    with pytest.raises(SandboxError, match="exists already"):
        workspace.snapshot(box.path("kept"))
    assert tree(files(box.path("kept"))) == before


def test_a_workspace_that_holds_something_is_not_opened_from_a_snapshot(box):
    reference(box).snapshot(box.path("kept"))
    box.path("second").mkdir()
    (box.path("second") / "mine").write_text("mine")
    with pytest.raises(SandboxError, match="must be empty, but holds 'mine'"):
        TrackedWorkspace(box.path("second")).open(box.path("kept"))
    assert (box.path("second") / "mine").read_text() == "mine"


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path):
    if not ROOT:
        pytest.skip("only root may mount")
    small = tmp_path / "small"
    small.mkdir()
    mounted("-t", "tmpfs", "-o", "size=1m", "test", str(small))
    try:
        workspace = TrackedWorkspace(tmp_path / "first")
        workspace.open(None)
        (tmp_path / "first" / "big").write_bytes(os.urandom(2 << 20))
        with pytest.raises(SandboxError, match="No space left"):
            workspace.snapshot(small / "kept")
        assert not os.listdir(small)  # noqa: PTH208
        workspace.snapshot(tmp_path / "kept")
        workspace.close()
    finally:
        subprocess.run(["umount", str(small)], check=True)


# ------------------------------------------------------------------- seen from elsewhere


def test_the_store_may_be_on_another_file_system(box, tmp_path_factory):
    store = tmp_path_factory.mktemp("store")
    workspace = reference(box)
    workspace.snapshot(box.path("here"))
    (box.path("first") / "solution.py").write_text("print(2)\n")
    workspace.snapshot(store / "there")
    before = tree(box.path("first"))
    (box.path("first") / "solution.py").write_text("print(3)\n")
    workspace.restore(box.path("here"))
    workspace.restore(store / "there")
    assert tree(box.path("first")) == before
    other = TrackedWorkspace(box.path("second"))
    other.open(store / "there")
    assert tree(box.path("second")) == before
    other.close()
    assert tree(box.path("second")) == before


def test_a_sandbox_sees_what_was_put_back(box):
    """It has the workspace mounted in a namespace of its own."""
    if not ROOT:
        pytest.skip("only root may mount")
    reference(box).snapshot(box.path("kept"))
    second, folder = box.open("second", "kept"), box.path("second")
    seen = box.path("seen")
    seen.mkdir()
    script = f"mount --bind {folder} {seen} && echo ready && exec sh"
    with subprocess.Popen(
        ["unshare", "-m", "--propagation", "slave", "sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as inside:
        assert inside.stdin
        assert inside.stdout

        def run(command: str) -> str:
            inside.stdin.write(f"{command}\n")
            inside.stdin.flush()
            return inside.stdout.readline()

        assert inside.stdout.readline() == "ready\n"
        assert run(f"cat {seen}/solution.py; cd {seen}") == "print(1)\n"
        run("echo changed > solution.py; mv models moved; rm -r closed; mkdir input; echo done")
        assert (folder / "solution.py").read_text() == "changed\n"
        second.restore(box.path("kept"))
        assert run("cat solution.py") == "print(1)\n"
        assert run("ls -d moved closed models 2>/dev/null | tr '\\n' ' '; echo") == (
            "closed models \n"
        )
        assert tree(folder) == tree(box.path("first"))
        inside.stdin.close()


UNPRIVILEGED = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from mle_ideator.sandboxes.workspaces.tracked import TrackedWorkspace
base = Path(sys.argv[1])
first = base / 'first'
workspace = TrackedWorkspace(first)
workspace.open(None)
(first / 'closed' / 'er').mkdir(parents=True)
(first / 'closed' / 'er' / 'file').write_text('x')
(first / 'none').write_text('none')
for path in ('closed/er/file', 'closed/er', 'closed', 'none'):
    (first / path).chmod(0)
def modes(folder):
    found = []
    for path in ('none', 'closed', 'closed/er', 'closed/er/file'):
        found.append((folder / path).lstat().st_mode & 0o777)
        (folder / path).chmod(0o700)
    content = (folder / 'none').read_text() + (folder / 'closed' / 'er' / 'file').read_text()
    for path in ('closed/er/file', 'closed/er', 'closed', 'none'):
        (folder / path).chmod(0)
    return found, content
workspace.snapshot(base / 'kept')
assert modes(first) == ([0, 0, 0, 0], 'nonex'), modes(first)
second = TrackedWorkspace(base / 'second')
second.open(base / 'kept')
assert second.strategy in ('copy', 'reflink')
assert modes(base / 'second') == ([0, 0, 0, 0], 'nonex')
(base / 'second' / 'none').chmod(0o700)
(base / 'second' / 'none').write_text('changed')
(base / 'second' / 'extra' / 'deep').mkdir(parents=True)
(base / 'second' / 'extra' / 'deep').chmod(0)
(base / 'second' / 'extra').chmod(0)
second.snapshot(base / 'later')
second.restore(base / 'kept')
assert modes(base / 'second') == ([0, 0, 0, 0], 'nonex')
assert sorted(os.listdir(base / 'second')) == ['closed', 'none']
second.restore(base / 'later')
assert sorted(os.listdir(base / 'second')) == ['closed', 'extra', 'none']
print('fine')
"""


def test_a_user_keeps_what_is_closed_to_its_owner(tmp_path):
    here = Path(__file__).parents[2]
    assert as_a_user(UNPRIVILEGED, str(tmp_path), str(here)) == "fine\n"
    if ROOT:  # what a user kept does not have its modes, so no overlay can show it
        workspace = TrackedWorkspace(tmp_path / "third")
        workspace.open(tmp_path / "kept")
        assert workspace.strategy != "overlay"
        assert stat.S_IMODE((tmp_path / "third" / "closed").lstat().st_mode) == 0
        workspace.close()


@pytest.mark.slow
def test_tens_of_thousands_of_files(box):
    workspace = box.open("first")
    folder = box.path("first")
    for number in range(100):
        (folder / f"d{number}").mkdir()
        for name in range(300):
            (folder / f"d{number}" / f"f{name}").touch()
    workspace.snapshot(box.path("one"))
    started = time.monotonic()
    (folder / "d5" / "f5").write_text("x")
    workspace.snapshot(box.path("two"))
    workspace.restore(box.path("one"))
    second = box.open("second", "two")
    assert (box.path("second") / "d5" / "f5").read_text() == "x"
    second.restore(box.path("one"))
    assert time.monotonic() - started < 240
    assert (folder / "d5" / "f5").read_bytes() == b""
    second.close(keep=())


@pytest.fixture(scope="module", autouse=True)
def _no_masking() -> Iterator[None]:
    """Modes are compared: none is to depend on who runs the tests."""
    before = os.umask(0o022)
    yield
    os.umask(before)
