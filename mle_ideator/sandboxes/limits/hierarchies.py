"""Where the control groups of a process lie in the file system (cgroup v1 and v2); their files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
_LIMITING = frozenset(("memory", "pids", "cpu", "cpuacct"))


@dataclass(frozen=True)
class Group:
    """One folder of control files."""

    folder: Path
    mounted: Path
    """The top of its hierarchy, as far as it is shown here."""
    controllers: frozenset[str]
    """Those of a v1 hierarchy. In v2, files tell; none are said here."""
    version: int

    def below(self, name: str) -> Group:
        return Group(self.folder / name, self.mounted, self.controllers, self.version)


def groups_of(pid: int | str = "self", proc: Path = PROC) -> tuple[Group, ...]:
    """The groups that a process is in, one a hierarchy; those that are not mounted are left out."""
    try:
        mounts = list(_mounts((proc / "self" / "mountinfo").read_text(errors="replace")))
        lines = (proc / str(pid) / "cgroup").read_text(errors="replace").splitlines()
    except OSError:
        return ()
    found = []
    for line in lines:
        _, words, path = line.split(":", 2)
        controllers = _LIMITING.intersection(words.split(","))
        if words and not controllers:
            continue
        for mount in mounts:
            if mount.controllers == controllers and (folder := mount.folder(path)):
                version = 1 if controllers else 2
                found.append(Group(folder, mount.place, controllers, version))
                break
    return tuple(found)


@dataclass(frozen=True)
class _Mount:
    place: Path
    root: str
    """Of its hierarchy, the group that is shown there."""
    controllers: frozenset[str]

    def folder(self, path: str) -> Path | None:
        """A group's folder, if it lies in what is shown."""
        if ".." in Path(path).parts or not Path(path).is_relative_to(self.root):
            return None
        return self.place / Path(path).relative_to(self.root)


def _mounts(mountinfo: str) -> Iterator[_Mount]:
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, (kind, *_, options) = before.split(" "), after.split(" ")
        place = Path(re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), fields[4]))
        if kind == "cgroup2":
            yield _Mount(place, fields[3], frozenset())
        elif kind == "cgroup" and (controllers := _LIMITING.intersection(options.split(","))):
            yield _Mount(place, fields[3], controllers)


# --------------------------------------------------------------------------------- files


def try_write(path: Path, text: str) -> bool:
    try:
        path.write_text(text)
    except OSError:
        return False
    return True


def words_of(path: Path) -> frozenset[str]:
    try:
        return frozenset(path.read_text().split())
    except OSError:
        return frozenset()


def number(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # `max`, or gone
        return 0


def field(path: Path, name: str) -> int:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{name} ")), 0)
