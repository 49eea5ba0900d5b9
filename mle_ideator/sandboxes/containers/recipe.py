"""How the usual image of the docker sandbox is made: the Dockerfile beside this file, and pins."""

from __future__ import annotations

import io
import platform
import tarfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from mle_ideator.sandboxes.containers.daemon import Daemon
from mle_ideator.sandboxes.facts import libraries

_NEEDED = ("ipykernel",)


def base_image() -> str:
    """A small one with the same Python as here, so that solutions run alike."""
    major, minor, _ = platform.python_version_tuple()
    return f"python:{major}.{minor}-slim"


def requirements() -> str:
    """The libraries that solutions may use, at the versions that are installed here."""
    pinned = [*((name, metadata.version(name)) for name in _NEEDED), *libraries()]
    # a local version (2.6.0+cu124) is not what the package index calls it
    return "".join(f"{name}=={version.partition('+')[0]}\n" for name, version in pinned)


def build_image(
    tag: str, base: str, requirements: str, network: str | None = None
) -> Iterator[str]:
    """Build it; yields what the daemon says of it. Raises `SandboxError`."""
    with Daemon() as daemon:
        yield from daemon.build(_context(requirements), tag, {"BASE": base}, network)


def _context(requirements: str) -> io.BytesIO:
    dockerfile = Path(__file__).with_name("Dockerfile").read_bytes()
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, text in (
            ("Dockerfile", dockerfile),
            ("requirements.txt", requirements.encode()),
        ):
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text))
    content.seek(0)
    return content
