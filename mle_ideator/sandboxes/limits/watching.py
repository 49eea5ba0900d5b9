"""Watches what one sandbox uses, from the runtime's process, and says when it has to be stopped.

What a control group holds by itself (memory, processes) is only counted here. All else is measured
again and again, at most a few hundredths of one core: often where that is cheap, seldom where a
workspace has very many files, but sooner when the disk fills up fast.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from mle_ideator.protocols import SandboxLimits
from mle_ideator.sandboxes import notes
from mle_ideator.sandboxes.facts import bound_bytes
from mle_ideator.sandboxes.limits.disk import DiskBound, Places, Taken, free_space, measure
from mle_ideator.sandboxes.limits.group_reader import GroupReader
from mle_ideator.sandboxes.limits.rlimits import file_bytes
from mle_ideator.sandboxes.limits.usage import Counts, Usage, tree_usage
from mle_ideator.sandboxes.threads import at_once
from mle_ideator.types import SandboxLimit

_EVERY_S = 0.1
_WALK_EVERY_S = 0.2
_SLOWEST_S = 1.0
"""Between two looks at the processes, however long one takes."""
_COST = 30
"""A pause is at least so many times as long as what was done before it."""
_COST_IN_HASTE = 8
_QUICK_WALK_S, _SETTLE_S = 0.02, 0.2
_NEAR = 0.8
"""Of the memory bound: from here on it is measured exactly."""
_HASTE = 0.05
"""Of the disk bound: a fall of the free space that calls for a look."""


@dataclass(frozen=True)
class Breach:
    """A bound at which the sandbox has to be stopped."""

    limit: SandboxLimit
    words: str
    """For the agent."""


class Watch:
    """Watches from `run` on, which never ends by itself; `begin` and `settle` frame each cell.

    - `root_pid` gives the process above all agent code, 0 while there is none; `trusted` those
      below it that run no agent code (what such a one holds open or in memory is not counted).
    - `group` is a control group that holds memory and processes, if there is one.
    - `folders` together may hold `disk_gib`, less the folders `without` in them.
    - `cpu_s` are the seconds of processor time that were seen, by root; earlier watches' count on.
    """

    def __init__(
        self,
        limits: SandboxLimits,
        *,
        root_pid: Callable[[], int],
        group: GroupReader | None,
        folders: Sequence[Path],
        without: Sequence[Path] = (),
        trusted: Callable[[], Collection[int]] = tuple,
        cpu_s: dict[int, float] | None = None,
    ) -> None:
        self._limits, self._root_pid, self._trusted = limits, root_pid, trusted
        self._group = group
        self._memory_bytes = bound_bytes(limits)
        self._disk_bytes, self._file_bytes = int(limits.disk_gib * 2**30), file_bytes(limits)
        self._places = Places(tuple(folders), frozenset(map(str, without)), self._file_bytes)
        self._disk = DiskBound(self._disk_bytes)
        self._told = group.counts() if group else Counts()
        self._cpu_s = {} if cpu_s is None else cpu_s
        self._one_walk, self._walked_s = asyncio.Lock(), 0.0
        self._settling: asyncio.Task[int] | None = None
        self._looked = asyncio.Event()
        self._full: frozenset[tuple[str, int]] = frozenset()
        self._full_told: frozenset[tuple[str, int]] | None = None
        self._breached = self._future()

    @property
    def breached(self) -> asyncio.Future[Breach]:
        """Done when the sandbox has to be stopped; a new one from each `begin` on."""
        return self._breached

    async def run(self) -> None:
        """Until it is cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._watch_processes())
                tasks.create_task(self._watch_disk())
        finally:
            if self._settling is not None:
                self._settling.cancel()

    async def ready(self) -> None:
        """What was there before any code ran is known, as far as that is quick."""
        if not self._looked.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._looked.wait(), _SETTLE_S)

    def begin(self) -> None:
        """A cell begins: what the last one was stopped for does not stop this one by itself."""
        if self._breached.done():
            self._breached = self._future()
        self._disk.begin()

    async def settle(self) -> None:
        """A cell has ended: look at its files once more, as far as that is quick."""
        if self._walked_s < _QUICK_WALK_S:
            if self._settling is None or self._settling.done():
                self._settling = asyncio.create_task(self._walk())
            await asyncio.wait({self._settling}, timeout=_SETTLE_S)

    def hits(self) -> tuple[tuple[SandboxLimit, str], ...]:
        """Bounds that were met since the last call without stopping the cell, with words for the
        agent: processes killed for memory, processes refused, files that reached their bound."""
        found: list[tuple[SandboxLimit, str]] = []
        counts, told = self._group.counts() if self._group else Counts(), self._told
        self._told = counts
        if (killed := counts.killed_for_memory - told.killed_for_memory) > 0:
            found.append(("memory", notes.killed_for_memory(killed, self._memory_bytes)))
        if (refused := counts.forks_refused - told.forks_refused) > 0:
            found.append(("processes", notes.forks_refused(refused, self._limits.processes)))
        if new := self._full.difference(self._full_told or ()):
            names = sorted(name for name, _ in new)
            found.append(("file_size", notes.full_files(names, self._file_bytes)))
            self._full_told = self._full
        return tuple(found)

    # ------------------------------------------------------------------------- processes

    async def _watch_processes(self) -> None:
        if self._group is not None and self._limits.cpu_s is None:
            return  # the group holds everything by itself
        while True:
            started = time.perf_counter()
            usage = await self._use()
            if usage is not None:
                self._judge(usage)
            spent = time.perf_counter() - started
            await asyncio.sleep(min(_SLOWEST_S, max(_EVERY_S, _COST * spent)))

    async def _use(self) -> Usage | None:
        """Adds what was seen of processor time: times of what ends unwaited for get lost in a tree,
        and those of an earlier tree are not in the next one."""
        usage, root = self._group.usage() if self._group else None, 0
        if usage is None or usage.cpu_s is None:
            root = self._root_pid()
            if not root:
                return usage
            near = int(_NEAR * self._memory_bytes)
            below = await at_once(tree_usage, root, near, self._trusted())
            usage = replace(usage, cpu_s=below.cpu_s) if usage else below
        self._cpu_s[root] = max(usage.cpu_s or 0.0, self._cpu_s.get(root, 0.0))
        return replace(usage, cpu_s=sum(self._cpu_s.values()))

    def _judge(self, usage: Usage) -> None:
        cpu_s, bound_s = usage.cpu_s or 0.0, self._limits.cpu_s
        if bound_s is not None and cpu_s >= bound_s:
            self._breach("cpu_time", notes.over_cpu_time(cpu_s, bound_s))
        if self._group is not None:
            return
        if usage.memory_bytes > self._memory_bytes:
            words = notes.over_memory(usage.memory_bytes, self._memory_bytes)
            self._breach("memory", words)
        if usage.processes > self._limits.processes:
            words = notes.over_processes(usage.processes, self._limits.processes)
            self._breach("processes", words)

    # ------------------------------------------------------------------------------ disk

    async def _watch_disk(self) -> None:
        while True:
            started, free = time.monotonic(), await self._walk()
            while not self._time_to_walk(time.monotonic() - started, free):  # noqa: ASYNC110
                await asyncio.sleep(_EVERY_S)

    async def _walk(self) -> int:
        """Returns the free space then."""
        async with self._one_walk:
            started = time.perf_counter()
            root, trusted = self._root_pid(), self._trusted()
            taken = await at_once(measure, self._places, root, trusted)
            self._walked_s = time.perf_counter() - started
            self._weigh(taken)
        return taken.free

    def _weigh(self, taken: Taken) -> None:
        self._full = frozenset(taken.full)
        if self._full_told is None:  # what was there before any code ran
            self._full_told = self._full
        self._looked.set()
        if why := self._disk.judge(taken):
            self._breach("disk", why)

    def _time_to_walk(self, since_s: float, free_then: int) -> bool:
        """`since_s`: since the last walk began."""
        if since_s > max(_WALK_EVERY_S, _COST * self._walked_s):
            return True
        if since_s < _COST_IN_HASTE * self._walked_s:
            return False
        free, reserve = free_space(self._places.folders)
        fallen = free_then - free
        return fallen > _HASTE * self._disk_bytes or (free < reserve and fallen > 0)

    # --------------------------------------------------------------------------- both

    def _breach(self, limit: SandboxLimit, words: str) -> None:
        if not self._breached.done():
            self._breached.set_result(Breach(limit, words))

    @staticmethod
    def _future() -> asyncio.Future[Breach]:
        return asyncio.get_running_loop().create_future()
