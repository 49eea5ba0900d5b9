"""A look at a task's files, bounded in bytes: names, sizes, and how the readable ones begin."""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path, PurePath
from typing import NamedTuple

from mle_ideator.actions import fenced
from mle_ideator.files import Signature, read_head, signature
from mle_ideator.prompts import render

FIRST = ("train.csv", "test.csv", "sample_submission.csv")
"""What is shown first, if it is there."""
_MOST_ENTRIES = 20_000
_MOST_LISTED = 30
_MOST_SHOWN = 8
_HEAD_BYTES = 8192
_LINES = 5
_LINE_HEAD = 300
_LINE_END = 60
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_TEXT_CONTROLS = b"\t\n\r\f\x1b"


class Listed(NamedTuple):
    """A file, or a folder with what is in it, in words."""

    name: str
    about: str


class Shown(NamedTuple):
    """How a file begins, and a remark on that."""

    name: str
    remark: str
    beginning: str


def preview(folder: str) -> str:
    """What `input/` holds. Read again only if the folder has changed."""
    return _preview(folder, signature(Path(folder)))


@lru_cache(maxsize=64)
def _preview(folder: str, _: Signature | None) -> str:
    entries = sorted(islice(_entries(Path(folder)), _MOST_ENTRIES), key=_order)
    shown = filter(None, (_shown(path) for path in entries if path.is_file()))
    return render(
        "codeact/files",
        files=[_listed(path) for path in entries[:_MOST_LISTED]],
        more=len(entries) - _MOST_LISTED,
        shown=list(islice(shown, _MOST_SHOWN)),
    )


def _entries(folder: Path) -> Iterator[Path]:
    try:
        yield from folder.iterdir()
    except OSError:
        return


def _order(path: Path) -> tuple[int, str]:
    return (FIRST.index(path.name) if path.name in FIRST else len(FIRST), path.name)


# ------------------------------------------------------------------------------------ names


def _listed(path: Path) -> Listed:
    name = _printable(path.name)
    if path.is_symlink():
        return Listed(name, "a link, not followed")
    if path.is_dir():
        return Listed(f"{name}/", _contents(path))
    try:
        return Listed(name, _size(path.stat().st_size))
    except OSError:
        return Listed(name, "unreadable")


def _contents(folder: Path) -> str:
    """How many files of which kind lie below a folder, and the first few."""
    found = list(islice(_below(folder), _MOST_ENTRIES))
    if not found:
        return "empty"
    kinds = Counter(PurePath(name).suffix.lower() or "no suffix" for name in found)
    counts = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common(6))
    examples = ", ".join(map(_printable, sorted(found)[:3]))
    least = "at least " if len(found) == _MOST_ENTRIES else ""
    return f"{least}{len(found):,} files ({counts}), such as {examples}"


def _below(folder: Path) -> Iterator[str]:
    """Files below a folder, by their paths in it. No link is followed."""
    waiting = [folder]
    while waiting:
        for path in _entries(waiting.pop()):
            if path.is_dir() and not path.is_symlink():
                waiting.append(path)
            else:
                yield path.relative_to(folder).as_posix()


def _size(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size = size / 1000
    return f"{size:,.3g} GB"


def _printable(text: str) -> str:
    """On one line, whatever a file is called; undecodable bytes as question marks."""
    plain = "".join(char if char.isprintable() else "?" for char in text)
    return plain if len(plain) <= 100 else f"{plain[:99]}…"


# ------------------------------------------------------------------------------------- text


def _shown(path: Path) -> Shown | None:
    """How a text file begins; `None` for links, devices and binary files."""
    head = read_head(path, _HEAD_BYTES)
    decoded = _decoded(head) if head else None
    if not head or decoded is None:
        return None
    text, remark = decoded
    lines = text.splitlines()
    if len(head) == _HEAD_BYTES and 1 < len(lines) <= _LINES:
        lines.pop()  # cut somewhere
    beginning = "\n".join(map(_line, lines[:_LINES]))
    return Shown(_printable(path.name), remark, fenced(beginning))


def _decoded(head: bytes) -> tuple[str, str] | None:
    """The text, and a remark on its encoding; `None` if it is none."""
    for mark, encoding in _BOMS:
        if head.startswith(mark):
            return head.decode(encoding, errors="replace"), f"encoded as {encoding}"
    if _is_binary(head):
        return None
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(head), ""
    except UnicodeDecodeError:
        return head.decode("cp1252", errors="replace"), "not UTF-8, perhaps cp1252"


def _is_binary(head: bytes) -> bool:
    controls = sum(byte < 32 and byte not in _TEXT_CONTROLS for byte in head)
    return b"\0" in head or controls > len(head) // 50


def _line(line: str) -> str:
    """The head of a long line, and its end: there the target often stands."""
    plain = "".join(char if char.isprintable() or char == "\t" else "�" for char in line)
    cut = len(plain) - _LINE_HEAD - _LINE_END
    if cut <= 0:
        return plain
    return f"{plain[:_LINE_HEAD]} [… {cut} characters …] {plain[-_LINE_END:]}"
