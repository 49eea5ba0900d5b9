"""Contents by their hash, each once, in a folder that any number of processes may add to.

    FOLDER/ab/HASH      as it is
    FOLDER/ab/HASH.z    compressed by zlib, where that pays

A content is written beside and then gets its name, so what has a name is whole, whenever a process
is killed.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from mle_ideator.errors import UsageError
from mle_ideator.rl.states.folders import write_pieces
from mle_ideator.rl.states.recorded import PIECE

MOST_COMPRESSED = 1 << 24
"""Bytes. A larger content is not held in memory; what is large is seldom text."""
_PAYS = 0.9
_LEVEL = 4
"""For tables of numbers 6 takes two and a half times as long, and saves 3 %."""
_PARTS = "parts"
_LEFT_AFTER_S = 3600.0


class Contents:
    """Methods raise `OSError` where the disk fails, `UsageError` for what is damaged or missing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._parts = folder / _PARTS
        self._parts.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._remove_leftovers()

    def add(self, content: bytes) -> str:
        """Keep it; tells its hash."""
        digest = hashlib.sha256(content).hexdigest()
        self.put(digest, len(content), (content,))
        return digest

    def put(self, digest: str, size: int, pieces: Iterable[bytes]) -> None:
        """Keep a content of that hash and size, if it is not kept yet."""
        if self._find(digest):
            return
        if size > MOST_COMPRESSED:
            self._write(self._path(digest), pieces, digest)
            return
        content = b"".join(pieces)
        if hashlib.sha256(content).hexdigest() != digest:
            raise UsageError(f"the content {digest[:12]} is damaged: it has another hash.")
        small = zlib.compress(content, _LEVEL)
        if len(small) < _PAYS * size:
            path = self._path(digest)
            self._write(path.with_name(f"{path.name}.z"), (small,))
        else:
            self._write(self._path(digest), (content,))

    def get(self, digest: str) -> bytes:
        return b"".join(self.pieces(digest))

    def pieces(self, digest: str) -> Iterator[bytes]:
        """It, in pieces; the hash is checked at the end."""
        path = self._find(digest)
        if path is None:
            raise UsageError(f"the content {digest[:12]} is not in {self._folder}.")
        found = hashlib.sha256()
        for piece in _unpacked(path) if path.suffix == ".z" else _read(path):
            found.update(piece)
            yield piece
        if found.hexdigest() != digest:
            raise UsageError(f"the content {digest[:12]} is damaged: {path} has another hash.")

    def _path(self, digest: str) -> Path:
        return self._folder / digest[:2] / digest

    def _find(self, digest: str) -> Path | None:
        path = self._path(digest)
        for found in (path.with_name(f"{path.name}.z"), path):
            if found.exists():
                return found
        return None

    def _write(self, path: Path, pieces: Iterable[bytes], digest: str | None = None) -> None:
        part = self._parts / secrets.token_hex(16)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            try:
                if digest is None:
                    _write_all(descriptor, pieces)
                else:
                    write_pieces(descriptor, pieces, digest)
            finally:
                os.close(descriptor)
            try:
                part.rename(path)
            except FileNotFoundError:
                path.parent.mkdir(mode=0o700, exist_ok=True)
                part.rename(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise

    def _remove_leftovers(self) -> None:
        """What killed processes were writing; a living one writes on."""
        for part in self._parts.iterdir():
            with suppress(FileNotFoundError):
                if time.time() - part.stat().st_mtime > _LEFT_AFTER_S:
                    part.unlink()


def _read(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


def _unpacked(path: Path) -> Iterator[bytes]:
    try:
        yield zlib.decompress(path.read_bytes())
    except zlib.error as error:
        raise UsageError(f"{path} is damaged: {error}.") from error


def _write_all(descriptor: int, pieces: Iterable[bytes]) -> None:
    with os.fdopen(descriptor, "wb", closefd=False) as file:
        file.writelines(pieces)
