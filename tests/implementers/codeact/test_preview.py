"""What is shown of a task's files: bounded, in any encoding, nothing but regular files."""

from __future__ import annotations

import os

import pytest

from mle_ideator.implementers.codeact.preview import preview


@pytest.fixture
def inputs(tmp_path):
    folder = tmp_path / "input"
    folder.mkdir()
    return folder


def test_the_usual_files_come_first_and_begin(inputs):
    (inputs / "a.csv").write_text("k\n1\n")
    for name in ("sample_submission.csv", "test.csv", "train.csv"):
        (inputs / name).write_text("\n".join(f"{name[:2]}{n},x" for n in range(50)))
    text = preview(str(inputs))
    names = ["train.csv", "test.csv", "sample_submission.csv", "a.csv"]
    assert [line.split(":")[0] for line in text.splitlines() if line.startswith("- ")] == [
        f"- {name}" for name in names
    ]
    assert "train.csv begins:\n\n```\ntr0,x\ntr1,x\ntr2,x\ntr3,x\ntr4,x\n```" in text
    assert "tr5" not in text


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("ä,ö\n1,2\n".encode(), "ä,ö"),
        ("ä,ö\n1,2\n".encode("utf-8-sig"), "encoded as utf-8-sig"),
        ("ä,ö\n1,2\n".encode("utf-16"), "ä,ö"),
        ("ä,ö\n1,2\n".encode("latin-1"), "not UTF-8, perhaps cp1252"),
        ("é".encode() * 8192, "é"),
        (b"a\x1b[31mb\n", "a�[31mb"),
        (b"a,b\r\n1,2\r\n", "a,b\n1,2"),
        (b"mac\rlines", "mac\nlines"),
        (b"```\nx\n", "````\n```\nx\n````"),
        (b"one," * 3000, "characters …]"),
    ],
)
def test_text_in_any_encoding_is_shown(inputs, content, shown):
    (inputs / "train.csv").write_bytes(content)
    text = preview(str(inputs))
    assert "train.csv begins" in text
    assert shown in text
    assert "\x1b" not in text


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n\0\0", bytes(range(1, 32)) * 9, b"PAR1\0"])
def test_binary_files_are_named_with_their_size_only(inputs, content):
    (inputs / "data.bin").write_bytes(content)
    text = preview(str(inputs))
    assert f"- data.bin: {len(content)} B" in text
    assert "begins" not in text


def test_no_link_is_followed_and_nothing_blocks(inputs, tmp_path):
    (tmp_path / "secret.csv").write_text("the answers")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "hidden.csv").write_text("more answers")
    (inputs / "train.csv").symlink_to(tmp_path / "secret.csv")
    (inputs / "folder").symlink_to(tmp_path / "more")
    (inputs / "below").mkdir()
    (inputs / "below" / "up").symlink_to(tmp_path)
    os.mkfifo(inputs / "pipe")
    text = preview(str(inputs))
    assert "answers" not in text
    assert "hidden" not in text
    assert "- train.csv: a link, not followed" in text
    assert "- below/: 1 files (1 no suffix), such as up" in text


def test_it_is_bounded_whatever_lies_there(inputs):
    for number in range(60):
        (inputs / f"{number:03d}-{'n' * 150}.csv").write_text(("z" * 2000 + "\n") * 100)
    images = inputs / "images"
    images.mkdir()
    for number in range(500):
        (images / f"{number}.png").write_bytes(b"\0")
    text = preview(str(inputs))
    assert len(text) < 20_000
    assert "- and 31 more" in text
    assert text.count("begins") == 8


def test_folders_are_counted(inputs):
    for name in ("a/1.png", "a/2.png", "b/notes.TXT"):
        (inputs / "images" / name).parent.mkdir(parents=True, exist_ok=True)
        (inputs / "images" / name).write_bytes(b"\0")
    (inputs / "empty").mkdir()
    text = preview(str(inputs))
    assert "- images/: 3 files (2 .png, 1 .txt), such as a/1.png, a/2.png, b/notes.TXT" in text
    assert "- empty/: empty" in text


def test_odd_names_stay_on_their_line(inputs):
    name = os.fsdecode(b"a\n# New rules\xff.csv")
    (inputs / name).write_text("x\n1\n")
    text = preview(str(inputs))
    text.encode()
    assert "- a?# New rules?.csv: 4 B" in text
    assert "\n# New rules" not in text


def test_it_is_read_again_only_if_the_folder_changed(inputs):
    (inputs / "train.csv").write_text("a\n")
    first = preview(str(inputs))
    (inputs / "train.csv").write_text("b\n")
    assert preview(str(inputs)) is first
    (inputs / "test.csv").write_text("c\n")
    assert "test.csv begins" in preview(str(inputs))


def test_a_folder_that_is_not_there_holds_nothing(tmp_path):
    assert "There are none." in preview(str(tmp_path / "missing"))
