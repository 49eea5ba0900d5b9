"""Where this user can make control groups that hold memory and processes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from mle_ideator.sandboxes.limits.hierarchies import Group, groups_of, number, try_write, words_of

_NEEDED = frozenset(("memory", "pids"))


def group_places(proc: Path) -> tuple[tuple[Group, ...], str]:
    """Groups that one can be made below, or none and the reason."""
    own = groups_of(proc=proc)
    old = [group for group in own if group.version == 1]
    new = next((group for group in own if group.version == 2), None)
    if frozenset().union(*(group.controllers for group in old)) >= _NEEDED:
        return _v1_places(old)
    if new is None:
        return (), "no control groups with memory and pids are mounted"
    return _v2_place(new)


def _v1_places(old: Sequence[Group]) -> tuple[tuple[Group, ...], str]:
    usable = [group for group in old if _may_write(group.folder)]
    missing = _NEEDED - frozenset().union(*(group.controllers for group in usable))
    if missing:
        return (), f"this user may not make control groups for {' and '.join(sorted(missing))}"
    return tuple(usable), ""


def _v2_place(own: Group) -> tuple[tuple[Group, ...], str]:
    folders = [own.folder, *own.folder.parents]
    writable = False
    for folder in folders[: folders.index(own.mounted) + 1]:
        if not (_may_write(folder) and _may_write(folder / "cgroup.procs")):
            continue
        writable = True
        if _hands_down(folder):
            return (Group(folder, own.mounted, own.controllers, 2),), ""
    if writable:
        return (), (
            "the control groups that this user may use hold processes themselves, or do not have "
            "memory and pids"
        )
    return (), (
        "this user may make no control groups; where systemd runs, start the runtime with "
        "`systemd-run --user --scope`"
    )


def _hands_down(folder: Path) -> bool:
    """Does it give memory and pids to the groups below it, or can it?"""
    if not words_of(folder / "cgroup.controllers") >= _NEEDED:
        return False
    is_top = not (folder / "cgroup.type").exists()
    can = is_top or not words_of(folder / "cgroup.procs")
    return can or words_of(folder / "cgroup.subtree_control") >= _NEEDED


def hand_down(place: Group, *, cpu: bool) -> None:
    """Let groups below a v2 group have the controllers. Raises `OSError`, not for cpu alone."""
    control = place.folder / "cgroup.subtree_control"
    if place.controllers or not words_of(place.folder / "cgroup.controllers") >= _NEEDED:
        return  # v1, or the v2 beside it, which has none of them
    if not words_of(control) >= _NEEDED:
        control.write_text("+memory +pids")
    if cpu and "cpu" not in words_of(control):
        try_write(control, "+cpu")


def bounds_below(place: Group, proc: Path) -> Iterator[int]:
    """Of the runtime's own v2 group and those up to `place`: bounds must not be got around."""
    own = next((group.folder for group in groups_of(proc=proc) if group.version == 2), None)
    if own is None or place.version == 1:
        return
    for folder in (own, *own.parents):
        if folder == place.folder:
            return
        if bound := number(folder / "memory.max"):
            yield bound


def _may_write(path: Path) -> bool:
    return os.access(path, os.W_OK)
