"""Folders that agent code was in, as a user whom permissions stop (root may do anything)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from mle_ideator.sandboxes.private import PREFIX, remove_leftovers
from mle_ideator.sandboxes.trees import make_usable, remove_tree


def as_a_user(code: str, *arguments: str, timeout_s: float = 60) -> str:
    """What a program without root's right to pass by permissions prints."""
    limits: tuple[str, ...] = ()
    if os.getuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("setpriv is not installed")
        limits = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
    command = [*limits, sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


NESTED = """
import os, sys
os.chdir(sys.argv[1])
for _ in range(1500):
    os.mkdir('d' * 10)
    os.chdir('d' * 10)
open('file', 'w').close()
os.chmod('.', 0)
"""
REMOVE = """
import sys; from pathlib import Path; from mle_ideator.sandboxes.trees import remove_tree
remove_tree(Path(sys.argv[1]))
"""


def test_deep_closed_and_linked_folders_are_removed(tmp_path):
    kept, folder = tmp_path / "kept", tmp_path / "folder"
    (folder / "closed" / "deeper").mkdir(parents=True)
    kept.mkdir()
    (kept / "file").write_text("kept")
    (folder / "link").symlink_to(kept)
    (folder / "closed" / "deeper" / "link").symlink_to(kept)
    os.mkfifo(folder / "closed" / "fifo")
    as_a_user(NESTED, str(folder))
    for path in (folder / "closed" / "deeper", folder / "closed", folder):
        path.chmod(0)
    as_a_user(REMOVE, str(folder))
    assert os.listdir(tmp_path) == ["kept"]  # noqa: PTH208
    assert (kept / "file").read_text() == "kept"
    assert kept.stat().st_mode & 0o777


@pytest.mark.parametrize("kind", ["missing", "file", "link"])
def test_what_can_not_be_removed_is_left_without_an_error(tmp_path, kind):
    path = tmp_path / "path"
    if kind == "file":
        path.write_text("x")
    if kind == "link":
        path.symlink_to(tmp_path)
    remove_tree(path)
    assert os.path.lexists(path) == (kind != "missing")


@pytest.mark.parametrize("how", ["closed", "missing", "file", "link", "loop"])
def test_a_folder_is_made_usable_and_no_link_followed(tmp_path, how):
    other, folder = tmp_path / "other", tmp_path / "folder"
    other.mkdir(mode=0o500)
    match how:
        case "closed":
            folder.mkdir()
            (folder / "file").write_text("kept")
            folder.chmod(0)
        case "file":
            folder.write_text("x")
        case "link":
            folder.symlink_to(other)
        case "loop":
            folder.symlink_to(folder)
    make_usable(folder)
    assert folder.lstat().st_mode & 0o700 == 0o700
    assert not folder.is_symlink()
    assert folder.is_dir()
    assert (folder / "file").exists() == (how == "closed")
    assert other.stat().st_mode & 0o777 == 0o500


ODD_LOCKS = {
    "fifo": "mkfifo lock",
    "folder": "mkdir lock",
    "link to a fifo": "mkfifo fifo; ln -s fifo lock",
    "link to a device": "ln -s /dev/zero lock",
    "link to itself": "ln -s lock lock",
    "socket": "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"lock\")'",
    "huge": "truncate -s 100G lock",
    "closed": "touch lock; chmod 0 lock",
    "none": "chmod 0 .",
}
CLEAR = "from mle_ideator.sandboxes.private import remove_leftovers; remove_leftovers()"


@pytest.mark.parametrize("how", ODD_LOCKS)
def test_no_odd_leftover_stops_a_run(monkeypatch, how):
    with tempfile.TemporaryDirectory(prefix="t-") as temporary:
        monkeypatch.setenv("TMPDIR", temporary)
        odd, plain = Path(temporary, f"{PREFIX}a"), Path(temporary, f"{PREFIX}b")
        for folder in (odd, plain):
            folder.mkdir()
        (plain / "lock").touch()
        subprocess.run(["bash", "-c", ODD_LOCKS[how]], cwd=odd, check=True)
        as_a_user(CLEAR, timeout_s=20)
        assert not plain.exists()
        remove_tree(odd)


def test_a_leftover_that_is_too_deep_for_recursion_is_cleared_away(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / f"{PREFIX}deep"
    folder.mkdir()
    (folder / "lock").touch()
    as_a_user(NESTED, str(folder))
    remove_leftovers()
    assert not folder.exists()


INPUTS = """
import os, shutil, subprocess, sys
from pathlib import Path
from mle_ideator.sandboxes.inputs import CopiedInputs
os.chdir(sys.argv[1])
Path('source/more').mkdir(parents=True)
Path('source/train.csv').write_text('rows')
Path('source/more/notes.txt').write_text('notes')
Path('other').mkdir()
Path('other/notes.txt').write_text('not an input')
copies = CopiedInputs(Path('source').resolve(), Path('input').absolute())
assert copies.mend() == ([], [])
subprocess.run(['bash', '-c', sys.argv[2]], check=True)
os.chdir(sys.argv[1])
print(copies.mend())
assert Path('input/train.csv').read_text() == 'rows'
assert Path('input/more/notes.txt').read_text() == 'notes'
assert Path('other/notes.txt').read_text() == 'not an input'
assert not Path('input').is_symlink()
assert copies.mend() == ([], [])
"""


@pytest.mark.parametrize(
    "change",
    [
        "chmod a-w input",
        "chmod 0 input",
        "chmod 0 input/train.csv input/more",
        "rm -rf input; ln -s other input",
        "rm -rf input; echo x > input",
        "rm -rf input; ln -s input input",
        "rm -rf input/more; ln -s ../other input/more",
        "rm input/train.csv; mkdir -p input/train.csv/a/b; chmod 0 input/train.csv/a",
        "rm input/train.csv; mkfifo input/train.csv",
    ],
)
def test_inputs_are_mended_whatever_was_done_to_them(tmp_path, change):
    assert as_a_user(INPUTS, str(tmp_path), change).endswith(", [])\n")


NOT_MENDED = """
import os, sys
from pathlib import Path
from mle_ideator.sandboxes.inputs import CopiedInputs
os.chdir(sys.argv[1])
Path('source/more').mkdir(parents=True)
Path('source/more/train.csv').write_text('rows')
Path('workspace').mkdir()
copies = CopiedInputs(Path('source').absolute(), Path('workspace/input').absolute())
os.rename('workspace', 'moved')
Path('workspace').touch()
print(copies.mend())
os.remove('workspace')
os.mkdir('workspace')
print(copies.mend())
"""


def test_inputs_that_can_not_be_put_back_are_told_and_tried_again(tmp_path):
    first, second = as_a_user(NOT_MENDED, str(tmp_path)).splitlines()
    assert first == "([], ['.'])"
    assert second == "(['.', 'more', 'more/train.csv'], [])"
