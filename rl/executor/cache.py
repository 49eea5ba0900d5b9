"""Results that were computed, in files: they survive whoever asked for them.

One file a result, named after the work's identity, written to the side and renamed, so that any
number of processes may read and write the same folder. A checksum tells a damaged file, which is as
good as none.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from contextlib import suppress
from pathlib import Path

_DIGEST = hashlib.sha256().digest_size
_INCOMING = "incoming"
_ABANDONED_S = 86_400.0


class ResultCache:
    """Results below one folder. Every process that uses it must see that folder under this path."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder).absolute()

    def prepare(self) -> None:
        """Make the folder, and remove what was half written a day ago or longer.

        Raises `OSError` if it can not be written to.
        """
        incoming = self.folder / _INCOMING
        incoming.mkdir(parents=True, exist_ok=True)
        for part in incoming.iterdir():
            with suppress(OSError):  # somebody else removes it, too
                if part.stat().st_mtime < time.time() - _ABANDONED_S:
                    part.unlink()

    def get(self, identity: str) -> bytes | None:
        """The result of that work, if it is there and whole."""
        try:
            content = self.path(identity).read_bytes()
        except OSError:
            return None
        digest, value = content[:_DIGEST], content[_DIGEST:]
        return value if digest == _checksum(identity, value) else None

    def put(self, identity: str, value: bytes) -> None:
        """Keep a result. Raises `OSError`; `FileNotFoundError` where the folder is not there."""
        part = self.folder / _INCOMING / secrets.token_hex(16)
        with part.open("xb") as file:
            file.write(_checksum(identity, value))
            file.write(value)
        path = self.path(identity)
        path.parent.mkdir(exist_ok=True)
        part.replace(path)

    def path(self, identity: str) -> Path:
        """Where the result of that work lies, if it is there."""
        return self.folder / identity[:2] / identity


def _checksum(identity: str, value: bytes) -> bytes:
    """Of both, so that a file under a wrong name is damaged, too."""
    return hashlib.sha256(identity.encode() + b"\0" + value).digest()
