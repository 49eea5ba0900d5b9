"""Files that agents wrote: nothing blocks, nothing is followed, nothing is half written."""

import os

import pytest

from mle_ideator.files import read_regular, replace_file, signature


def test_a_regular_file_is_read_whole(tmp_path):
    (tmp_path / "a").write_bytes(b"\xff1")
    assert read_regular(tmp_path / "a", 10) == b"\xff1"


@pytest.mark.parametrize("kind", ["missing", "folder", "link", "fifo", "device", "large"])
def test_anything_else_is_none(tmp_path, kind):
    path = tmp_path / "it"
    match kind:
        case "folder":
            path.mkdir()
        case "link":
            (tmp_path / "secret").write_text("secret")
            path.symlink_to(tmp_path / "secret")
        case "fifo":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "large":
            path.write_bytes(b"x" * 11)
    assert read_regular(path, 10) is None


def test_writing_the_same_bytes_again_changes_the_signature(tmp_path):
    path = tmp_path / "submission.csv"
    assert signature(path) is None
    path.write_text("same")
    first = signature(path)
    os.utime(path, ns=(first[2], first[2]))  # what agent code could do to hide it
    second = signature(path)
    path.unlink()
    path.write_text("same")
    os.utime(path, ns=(first[2], first[2]))
    assert len({first, second, signature(path)}) == 3


def test_replacing_goes_not_through_a_link(tmp_path):
    (tmp_path / "outside").write_text("untouched")
    (tmp_path / "solution.py").symlink_to(tmp_path / "outside")
    replace_file(tmp_path / "solution.py", b"new")
    assert (tmp_path / "outside").read_text() == "untouched"
    assert (tmp_path / "solution.py").read_text() == "new"
    assert not (tmp_path / "solution.py").is_symlink()
    assert len(list(tmp_path.iterdir())) == 2


def test_replacing_moves_a_folder_in_the_way_aside(tmp_path):
    (tmp_path / "solution.py" / "full").mkdir(parents=True)
    replace_file(tmp_path / "solution.py", b"new")
    assert (tmp_path / "solution.py").read_text() == "new"
