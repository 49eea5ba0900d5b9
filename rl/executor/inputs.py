"""Files on the nodes of a cluster: each content once a node, in a folder of the node's, by hash."""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mle_ideator.errors import UsageError
from mle_ideator.files import Signature, signature
from mle_ideator.types import Value

_BLOCK = 1024 * 1024
_ROOM = 20 * 1024**3
"""Bytes that a node's folder may hold before the longest unused leave."""


class Named(Value, frozen=True):
    """A file as it travels."""

    digest: str
    """SHA-256 of its content, in hex."""
    name: str
    path: str
    """On the machine that it comes from."""


class Digests:
    """Hashes of files, each computed once as long as the file stays what it is."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Signature | None, str]] = {}

    def named(self, path: str) -> Named:
        """Raises `UsageError` if it is no file that can be read."""
        now = signature(Path(path).resolve())
        known = self._known.get(path)
        if known is None or now is None or known[0] != now:
            known = self._known[path] = now, _digest(path)
        return Named(known[1], Path(path).name, str(Path(path).absolute()))


def _digest(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(f"the input {path} can not be read: {error}") from error


class NodeFiles:
    """What is kept on one node for all that run there, now and later."""

    def __init__(self, folder: Path | None = None, room: int = _ROOM) -> None:
        default = Path(tempfile.gettempdir()) / f"mle-ideator-inputs-{os.getuid()}"
        self._folder, self._room = folder or default, room

    @contextmanager
    def held(self, file: Named, fetch: Callable[[], bytes]) -> Iterator[Path]:
        """The file, fetched only if it is not here; it stays at least until this is left."""
        with self._locked(file.digest) as (place, descriptor):
            path = place / file.name
            if not path.exists():
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if not path.exists():
                    self._write(path, fetch())
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            os.utime(place)
            yield path

    @contextmanager
    def _locked(self, digest: str) -> Iterator[tuple[Path, int]]:
        """Its folder, which nobody removes meanwhile."""
        place = self._folder / digest
        while True:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
            except FileNotFoundError:
                continue  # it was removed in between
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH)
                if _is_at(descriptor, place):
                    yield place, descriptor
                    return
            finally:
                os.close(descriptor)

    def _write(self, path: Path, content: bytes) -> None:
        self._make_room(len(content))
        part = path.with_name(f".{secrets.token_hex(8)}.part")
        part.write_bytes(content)
        part.chmod(0o400)  # it is others' input, too
        part.replace(path)

    def _make_room(self, more: int) -> None:
        places = sorted(self._folder.iterdir(), key=_used)
        sizes = {place: _size(place) for place in places}
        total = sum(sizes.values()) + more
        for place in places:
            if total <= self._room:
                return
            if _removed(place):
                total -= sizes[place]


def _is_at(descriptor: int, place: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), place.stat())
    except FileNotFoundError:
        return False


def _used(place: Path) -> float:
    with suppress(OSError):
        return place.stat().st_mtime
    return 0.0


def _size(place: Path) -> int:
    with suppress(OSError):
        return sum(file.stat().st_size for file in place.iterdir())
    return 0


def _removed(place: Path) -> bool:
    """Unless somebody uses it."""
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(place)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
