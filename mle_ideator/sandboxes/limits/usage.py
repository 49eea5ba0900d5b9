"""What agent code uses: as a control group counts it, or as the sum over a tree of processes."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from mle_ideator.sandboxes.processes import descendants

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_DELETED = " (deleted)"


@dataclass(frozen=True)
class Usage:
    """At one moment."""

    memory_bytes: int
    """Without file pages that the system takes back when it needs them."""
    cpu_s: float | None
    """Processor time so far; `None` where nobody counts it."""
    processes: int
    """Threads included."""


@dataclass(frozen=True)
class Counts:
    """How often bounds were hit so far."""

    killed_for_memory: int = 0
    forks_refused: int = 0


class HeldFiles(NamedTuple):
    """Files without a name that processes keep open: they take space, and no walk finds them."""

    bytes: int
    complete: bool
    """Could every process be looked at?"""


class _Stat(NamedTuple):
    """Of one process; times in clock ticks."""

    own: int
    of_ended_children: int
    threads: int
    resident: int
    """Bytes, those included that it shares with others."""


def tree_usage(root: int, exact_from: int, trusted: Collection[int] = ()) -> Usage:
    """The sum over all processes below `root`, and the times of those that `root` saw end.

    A fork shares memory with its parent, so that sums of resident memory count pages many times.
    From `exact_from` bytes on, each page is counted by the share that a process has in it. Where
    that can not be read, the resident memory stands. That of `trusted` processes, which run no
    agent code, is not counted.
    """
    found = [(pid, stat) for pid in descendants(root) if (stat := _stat(pid))]
    above = _stat(root)
    ticks = sum(stat.own + stat.of_ended_children for _, stat in found)
    own = [(pid, stat.resident) for pid, stat in found if pid not in trusted]
    memory = sum(resident for _, resident in own)
    if memory >= exact_from:
        memory = sum(_proportional(pid, resident) for pid, resident in own)
    return Usage(
        memory_bytes=memory,
        cpu_s=(ticks + (above.of_ended_children if above else 0)) / _TICKS,
        processes=sum(stat.threads for _, stat in found),
    )


def held_files(root: int, devices: Collection[int], trusted: Collection[int] = ()) -> HeldFiles:
    """What processes below `root` hold open on these file systems, each file once; without
    `trusted` ones, which run no agent code."""
    blocks: dict[tuple[int, int], int] = {}
    complete = True
    for pid in set(descendants(root)).difference(trusted):
        try:
            for status in _deleted(pid):
                if status.st_dev in devices:
                    blocks[status.st_dev, status.st_ino] = status.st_blocks
        except PermissionError:
            complete = False
        except OSError:
            continue  # it has ended
    return HeldFiles(512 * sum(blocks.values()), complete)


def _deleted(pid: int) -> Iterator[os.stat_result]:
    folder = f"/proc/{pid}/fd"
    for number in os.listdir(folder):  # noqa: PTH208 many times a second
        path = f"{folder}/{number}"
        try:
            if os.readlink(path).endswith(_DELETED):  # noqa: PTH115 no path
                yield os.stat(path)  # noqa: PTH116
        except FileNotFoundError:
            continue


def _stat(pid: int) -> _Stat | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 many times a second
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    own, ended = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
    return _Stat(own, ended, int(fields[17]), int(fields[21]) * _PAGE)


def _proportional(pid: int, otherwise: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:  # noqa: PTH123
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except (FileNotFoundError, ProcessLookupError):
        return 0  # it has ended
    except OSError:
        pass  # agent code can forbid it: such a process counts in full
    return otherwise
