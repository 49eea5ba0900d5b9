"""A control group per sandbox: bounds that the Linux kernel keeps, for all processes together.

cgroup v1: one folder in each hierarchy (memory, pids, cpu, cpuacct) below the group that the
runtime is in; where v2 is mounted beside them, one there as well, for its `cgroup.kill`.

cgroup v2: one folder in the nearest group above the runtime that this user may write to and that
hands memory and pids down. A group that holds processes itself can not do that.
"""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from mle_ideator.protocols import SandboxLimits
from mle_ideator.sandboxes.facts import bound_bytes
from mle_ideator.sandboxes.limits.group_places import bounds_below, group_places, hand_down
from mle_ideator.sandboxes.limits.group_reader import GroupReader
from mle_ideator.sandboxes.limits.hierarchies import PROC, Group, groups_of, try_write
from mle_ideator.sandboxes.limits.usage import Counts
from mle_ideator.sandboxes.owners import is_gone, this_process
from mle_ideator.sandboxes.processes import kill

_PREFIX = "mle-ideator_"
_PERIOD_US = 100_000
_KILL_S, _REMOVE_S = 5.0, 2.0
_PAUSE_S = 0.002
_UNLIMITED = {1: "-1", 2: f"max {_PERIOD_US}"}


class ControlGroup(GroupReader):
    """The control groups of one sandbox. All methods block for a moment, `kill` up to seconds."""

    def __init__(self, groups: Sequence[Group]) -> None:
        super().__init__(groups)
        self._name = groups[0].folder.name
        self._refused_by_kill = 0
        self._processes = self._quota = ""

    @classmethod
    def create(cls, limits: SandboxLimits, *, proc: Path = PROC) -> Self | None:
        """Made and bounded; `None` where this user can make none that holds memory and processes:
        `why_not` has the reason."""
        places, _ = group_places(proc)
        try:
            return cls._made(limits, places, proc) if places else None
        except OSError:
            return None

    @classmethod
    def _made(cls, limits: SandboxLimits, places: Sequence[Group], proc: Path) -> Self:
        """Raises `OSError`, and then leaves nothing."""
        name = f"{_PREFIX}{this_process().replace(' ', '_')}_{secrets.token_hex(8)}"
        group = cls([place.below(name) for place in places])
        try:
            for place in places:
                hand_down(place, cpu=limits.cpus is not None)
                (place.folder / name).mkdir()
            group._bound(limits, min([bound_bytes(limits), *bounds_below(places[0], proc)]))
        except OSError:
            group.remove()
            raise
        return group

    @property
    def procs(self) -> tuple[Path, ...]:
        """Files with the processes in it."""
        return tuple(group.folder / "cgroup.procs" for group in self._groups)

    @property
    def entrances(self) -> tuple[Path, ...]:
        """A process joins by writing `0` into each, before it starts threads or others.

        In version 1 a single thread can move, for which Linux does not wait for every other process
        to be at rest: a tenth of a millisecond instead of ten.
        """
        names = {1: "tasks", 2: "cgroup.procs"}
        return tuple(group.folder / names[group.version] for group in self._groups)

    @property
    def holds_cpus(self) -> bool:
        """Is processor time rationed? False where the limits ask for that but it can not be."""
        return bool(self._quota)

    def counts(self) -> Counts:
        """Without the forks that `kill` itself refused."""
        found = super().counts()
        return Counts(found.killed_for_memory, found.forks_refused - self._refused_by_kill)

    def kill(self) -> None:
        """Everything in it, a fork bomb included; the group can be used on. Never raises."""
        refused = self._refused()
        with self._unthrottled():
            if self._v2:
                try_write(self._v2 / "cgroup.kill", "1")
            deadline = time.monotonic() + _KILL_S
            while (members := self._members()) and time.monotonic() < deadline:
                try_write(self._folder("pids") / "pids.max", "0")
                kill(members, signal.SIGKILL, still=self._holds)
                time.sleep(_PAUSE_S)
            try_write(self._folder("pids") / "pids.max", self._processes)
        self._refused_by_kill += self._refused() - refused

    def remove(self) -> None:
        """Never raises. Waits a little for processes that are ending."""
        deadline = time.monotonic() + _REMOVE_S
        waiting = [group.folder for group in self._groups]
        while waiting := [folder for folder in waiting if not _removed(folder)]:
            if time.monotonic() > deadline:
                return
            time.sleep(_PAUSE_S)

    # ------------------------------------------------------------------------- its parts

    def _bound(self, limits: SandboxLimits, memory: int) -> None:
        self._processes = str(limits.processes)
        if "memory" in self._folders:
            folder = self._folders["memory"]
            (folder / "memory.limit_in_bytes").write_text(str(memory))
            if not try_write(folder / "memory.memsw.limit_in_bytes", str(memory)):
                try_write(folder / "memory.swappiness", "0")
        else:
            folder = self._folder("memory")
            (folder / "memory.max").write_text(str(memory))
            try_write(folder / "memory.swap.max", "0")
        (self._folder("pids") / "pids.max").write_text(self._processes)
        if limits.cpus is not None:
            self._throttle(limits.cpus)

    def _throttle(self, cpus: float) -> None:
        """As far as this can be had: it is no reason to go without the other bounds."""
        share = max(1000, int(cpus * _PERIOD_US))
        self._quota = str(share) if "cpu" in self._folders else f"{share} {_PERIOD_US}"
        if not try_write(self._quota_file, self._quota):
            self._quota = ""

    @property
    def _quota_file(self) -> Path:
        name = "cpu.cfs_quota_us" if "cpu" in self._folders else "cpu.max"
        return self._folder("cpu") / name

    @contextmanager
    def _unthrottled(self) -> Iterator[None]:
        """Processes need processor time to end, too."""
        if not self._quota:
            yield
            return
        try_write(self._quota_file, _UNLIMITED[1 if "cpu" in self._folders else 2])
        try:
            yield
        finally:
            try_write(self._quota_file, self._quota)

    def _members(self) -> set[int]:
        found: set[int] = set()
        for file in self.procs:
            with suppress(OSError):
                found.update(map(int, file.read_text().split()))
        return found - {0, os.getpid()}

    def _holds(self, pid: int) -> bool:
        return self._name in (PROC / str(pid) / "cgroup").read_text()


def why_not(proc: Path = PROC) -> str:
    """Why this user can make no control groups, and how to mend that; empty where they can be."""
    places, reason = group_places(proc)
    if not reason:
        try:
            ControlGroup._made(SandboxLimits(), places, proc).remove()
        except OSError as error:
            return f"the system refused to make a control group: {error.strerror}"
    return reason


def remove_leftovers(*, proc: Path = PROC) -> None:
    """Kill and remove the groups of runtimes that were killed before they could. Never raises."""
    found: dict[str, list[Group]] = {}
    for place in {*groups_of(proc=proc), *group_places(proc)[0]}:
        for folder in _near(place):
            words = folder.name.removeprefix(_PREFIX).rpartition("_")[0].replace("_", " ")
            if is_gone(words):
                group = Group(folder, place.mounted, place.controllers, place.version)
                found.setdefault(folder.name, []).append(group)
    for groups in found.values():
        leftover = ControlGroup(groups)
        leftover.kill()
        leftover.remove()


def _near(place: Group) -> Iterable[Path]:
    """Below the runtime's own group, and below its neighbours, one of which the last run was in."""
    with suppress(OSError):
        yield from place.folder.glob(f"{_PREFIX}*")
        if place.folder != place.mounted:
            yield from place.folder.parent.glob(f"*/{_PREFIX}*")


def _removed(folder: Path) -> bool:
    """With the groups that agent code may have made in it."""
    try:
        for inner, _, _ in os.walk(folder, topdown=False):
            os.rmdir(inner)  # noqa: PTH106
    except OSError:
        return not folder.exists()
    return not folder.exists()
