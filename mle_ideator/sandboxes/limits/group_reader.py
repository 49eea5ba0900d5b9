"""What control groups count, of cgroup v1 and v2."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mle_ideator.sandboxes.limits.hierarchies import Group, field, number
from mle_ideator.sandboxes.limits.usage import Counts, Usage


class GroupReader:
    """What the groups of a process tell. What can not be read is 0, as after their end."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self._folders = {name: group.folder for group in groups for name in group.controllers}
        self._v2 = next((group.folder for group in groups if group.version == 2), None)
        self._groups = tuple(groups)

    @property
    def counts_memory(self) -> bool:
        """Is it known how many processes were killed for memory?"""
        return self._kills_file.is_file()

    def usage(self) -> Usage:
        return Usage(
            memory_bytes=self._memory(),
            cpu_s=self._cpu_s(),
            processes=number(self._folder("pids") / "pids.current"),
        )

    def counts(self) -> Counts:
        return Counts(killed_for_memory=self._killed(), forks_refused=self._refused())

    def _memory(self) -> int:
        """Less the file pages that go first when memory is needed."""
        folder, old = self._folder("memory"), "memory" in self._folders
        used = number(folder / ("memory.usage_in_bytes" if old else "memory.current"))
        spare = field(folder / "memory.stat", "total_inactive_file" if old else "inactive_file")
        return max(0, used - spare)

    def _cpu_s(self) -> float | None:
        if "cpuacct" in self._folders:
            return number(self._folders["cpuacct"] / "cpuacct.usage") / 1e9
        if self._v2 is None:
            return None
        return field(self._v2 / "cpu.stat", "usage_usec") / 1e6

    def _killed(self) -> int:
        return field(self._kills_file, "oom_kill")

    @property
    def _kills_file(self) -> Path:
        name = "memory.oom_control" if "memory" in self._folders else "memory.events"
        return self._folder("memory") / name

    def _refused(self) -> int:
        return field(self._folder("pids") / "pids.events", "max")

    def _folder(self, controller: str) -> Path:
        """Of v1, else of v2; a folder that is nowhere if there is neither."""
        return self._folders.get(controller) or self._v2 or Path("/nonexistent")
