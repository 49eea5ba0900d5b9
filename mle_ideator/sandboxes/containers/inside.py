"""What an image holds: its Python and libraries, asked once for each image."""

from __future__ import annotations

import hashlib
import secrets
import site
import sysconfig
from collections.abc import Iterable
from pathlib import Path

import msgspec
import platformdirs

from mle_ideator.errors import SandboxError
from mle_ideator.files import replace_file
from mle_ideator.sandboxes.containers.daemon import Container, Daemon, Image
from mle_ideator.sandboxes.facts import LIBRARIES
from mle_ideator.types import Value

_OLDEST_PYTHON = (3, 11)
_OLDEST_IPYKERNEL = (7,)
_NOBODY = "65534:65534"
_QUESTION = """
import json, os, platform, shutil, site, sys, sysconfig
from importlib import metadata

def version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None

def folders_in(folder):
    return [name for name in os.listdir(folder) if os.path.isdir(os.path.join(folder, name))]

places = [sysconfig.get_path('purelib'), *site.getsitepackages()]
libraries = {name: version(name) for name in sys.argv[1:]}
print(json.dumps({
    'python': platform.python_version(),
    'executable': sys.executable,
    'path': os.environ['PATH'],
    'ipykernel': version('ipykernel'),
    'bash': shutil.which('bash') is not None,
    'libraries': {name: found for name, found in libraries.items() if found},
    'packages': {place: folders_in(place) for place in places if os.path.isdir(place)},
}))
"""


class Inside(Value, frozen=True, kw_only=True):
    """What was found in an image."""

    python: str
    executable: str
    path: str
    """Where it looks for programs."""
    ipykernel: str | None
    bash: bool
    libraries: dict[str, str]
    """Version by distribution name, of those that solutions may use."""
    packages: dict[str, list[str]]
    """Names of the folders in each folder of packages."""

    def lacks(self) -> str | None:
        """What a kernel needs and it has not, or `None`."""
        if _numbers(self.python) < _OLDEST_PYTHON:
            return f"its Python is {self.python}, and 3.11 or later is needed"
        if self.ipykernel is None or _numbers(self.ipykernel) < _OLDEST_IPYKERNEL:
            return (
                "it has no ipykernel 7 or later: add `pip install 'ipykernel>=7'` to its Dockerfile"
            )
        return None if self.bash else "it has no bash"


def look_inside(daemon: Daemon, image: Image) -> Inside:
    """Ask the image's own Python; a second the first time. Raises `SandboxError`."""
    name = hashlib.sha256("\n".join([image.id, _QUESTION, *LIBRARIES]).encode()).hexdigest()
    known = platformdirs.user_cache_path("mle-ideator") / "images" / f"{name}.json"
    try:
        return msgspec.json.decode(known.read_bytes(), type=Inside)
    except (OSError, msgspec.DecodeError):
        found = _ask(daemon, image)
    _remember(known, found)
    return found


def covered(masked: Iterable[str], inside: Inside) -> dict[str, bool]:
    """Where the image has what must not be seen, and whether that is a folder.

    That is what is masked among this machine's packages, and this very package.
    """
    relatives = {Path("mle_ideator"): True}
    for path in map(Path, masked):
        for place in _places():
            if path.is_relative_to(place):
                relatives[path.relative_to(place)] = path.is_dir()
    return {
        f"{place}/{relative}": is_folder
        for place, names in inside.packages.items()
        for relative, is_folder in relatives.items()
        if relative.parts[0] in names
    }


def _places() -> set[Path]:
    """This machine's folders of packages, as they are named and as they resolve."""
    named = {sysconfig.get_path("purelib"), *site.getsitepackages(), site.getusersitepackages()}
    return {variant for name in named for variant in (Path(name), Path(name).resolve())}


def _ask(daemon: Daemon, image: Image) -> Inside:
    question = Container(
        name=f"mle-ideator-asks-{secrets.token_hex(6)}",
        image=image.id,
        command=("python", "-I", "-c", _QUESTION, *LIBRARIES),
        user=_NOBODY,
        memory_bytes=2**30,
    )
    try:
        code, said = daemon.output(question)
        return msgspec.json.decode(said.strip().splitlines()[-1], type=Inside)
    except (SandboxError, msgspec.DecodeError, IndexError) as error:
        reason = error if isinstance(error, SandboxError) else f"exit code {code}, {said[-300:]!r}"
        raise SandboxError(f"python does not run in the image {image.name!r}: {reason}") from error


def _remember(path: Path, found: Inside) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, msgspec.json.encode(found))
    except OSError:
        return  # asked again next time


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
