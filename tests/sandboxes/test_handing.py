"""Files handed to the user that agent code in a container is, while agent code may run."""

from __future__ import annotations

import os
import threading
from contextlib import suppress

import pytest

from mle_ideator.sandboxes.containers.handing import User, hand_over, hand_over_new

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
AGENT = User(60_901, 60_901, gets_files=True)


def owner(path) -> int:
    return path.lstat().st_uid


def test_everything_of_roots_is_given_and_nothing_else(tmp_path):
    folder, outside = tmp_path / "workspace", tmp_path / "outside"
    (folder / "agents" / "deep").mkdir(parents=True)
    outside.mkdir()
    (outside / "file").write_text("")
    for path in (folder / "mine.py", folder / "agents" / "restored", outside / "other"):
        path.write_text("")
    (folder / "link").symlink_to(outside / "file")
    (folder / "folder").symlink_to(outside)
    os.chown(folder / "agents", 60_902, 60_902)
    hand_over(folder, AGENT)
    given = (folder, folder / "mine.py", folder / "agents" / "restored", folder / "link")
    assert {owner(path) for path in given} == {AGENT.uid}
    assert owner(folder / "agents") == 60_902
    assert {owner(path) for path in (outside, *outside.iterdir())} == {0}


def test_new_folders_are_given_with_what_is_in_them(tmp_path):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "not looked at").write_text("")
    os.chown(tmp_path / "old", AGENT.uid, AGENT.gid)
    (tmp_path / "new" / "deep").mkdir(parents=True)
    (tmp_path / "new" / "deep" / "file").write_text("")
    (tmp_path / "solution.py").write_text("")
    hand_over_new(tmp_path, AGENT)
    new = tmp_path / "new"
    for path in (new, new / "deep", new / "deep" / "file", tmp_path / "solution.py"):
        assert owner(path) == AGENT.uid
    assert owner(tmp_path / "old" / "not looked at") == 0


def test_a_link_in_place_of_a_folder_gives_nothing_of_the_hosts_away(tmp_path):
    folder, outside = tmp_path / "workspace", tmp_path / "outside"
    (folder / "real").mkdir(parents=True)
    outside.mkdir()
    for place in (folder / "real", outside):
        (place / "passwd").write_text("")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            (folder / "real").rename(folder / "away")
            (folder / "real").symlink_to(outside)
            (folder / "real").unlink()
            (folder / "away").rename(folder / "real")

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        for _ in range(500):
            for name in ("real", "away"):
                with suppress(FileNotFoundError):
                    os.lchown(folder / name, 0, 0)  # so that it is looked into again
            hand_over_new(folder, AGENT)
            hand_over(folder, AGENT)
            assert owner(outside / "passwd") == owner(outside) == 0
    finally:
        stop.set()
        swapping.join()
