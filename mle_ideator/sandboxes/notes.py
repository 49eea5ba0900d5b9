"""What the runtime adds to a cell's output, in words for the agent."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from mle_ideator.sandboxes.output import one_line
from mle_ideator.sandboxes.processes import Process

_SHOWN = 5
_LONGEST = 500
_BACKGROUND = "job start python train.py"


def exit_code(code: int) -> list[str]:
    """How bash ended, if it did not end well."""
    if code == 0:
        return []
    if code > 0:
        return [f"bash ended with exit code {code}"]
    name = signal.strsignal(-code) if -code < signal.NSIG else None
    return [f"bash was ended by signal {-code} ({name or 'unknown'})"]


def still_running(processes: Sequence[Process]) -> list[str]:
    return _listed("still running in the background", processes)


def ended(processes: Sequence[Process]) -> list[str]:
    return _listed("ended with the cell", processes)


def _listed(what: str, processes: Sequence[Process]) -> list[str]:
    if not processes:
        return []
    shown = "; ".join(str(process) for process in processes[:_SHOWN])
    more = len(processes) - _SHOWN
    return [f"{what}: {shown}" + (f"; and {more} more" if more > 0 else "")]


def jobs_ended(jobs: Sequence[tuple[int, int]], more: int = 0) -> list[str]:
    """Numbers and exit codes; more than can be shown are counted, with `more` others."""
    lines = [
        f"background job {number} ended with "
        + (f"exit code {code}" if code >= 0 else f"signal {-code}")
        for number, code in jobs[:_SHOWN]
    ]
    more += len(jobs) - _SHOWN
    return [*lines, f"and {more} more jobs ended"] if more > 0 else lines


KERNELS_DIED = "kernel after kernel died: whatever ran in the background, jobs included, was ended"


def died(why: str) -> str:
    return (
        f"the kernel died ({why}). Variables and background processes are gone, files are still "
        "there. The next cell gets a new kernel."
    )


def not_started(why: str) -> str:
    return (
        f"no new kernel could be started, so this cell did not run ({one_line(why, _LONGEST)}). "
        "The next cell tries again."
    )


def died_before(why: str) -> str:
    return (
        f"the kernel had died since the last cell ({why}): this cell ran in a new one. Earlier "
        "variables and background processes are gone, files are still there."
    )


def stopped_before(why: str) -> str:
    return (
        f"between the cells, what ran in the background was {why} This cell ran in a new kernel: "
        "earlier variables are gone, files are still there."
    )


def state(kept: bool) -> str:
    """What is left after a cell was stopped."""
    if kept:
        return "it was interrupted and variables are kept"
    return (
        "it did not react to an interrupt and was killed: variables and background processes "
        "are gone, files are still there, and the next cell gets a new kernel"
    )


def timeout(duration_s: float, limit_s: float, kept: bool) -> str:
    return (
        f"stopped after {duration_s:.1f} s, the limit for this cell is {limit_s:.1f} s; "
        f"{state(kept)}. "
        "Shorten it (fewer rows, folds or iterations), or run it in the background "
        f"(bash: `{_BACKGROUND}`, then `job tail`, `job wait`)."
    )


def inputs_restored(names: Sequence[str]) -> list[str]:
    return _named("inputs are read-only: put back what the cell had changed or removed", names)


def inputs_lost(names: Sequence[str]) -> list[str]:
    return _named("inputs that were changed or removed could not be put back", names)


def _named(what: str, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    return [f"{what} ({_some(names)})"]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")


def with_earlier(earlier: str, text: str) -> str:
    """A cell's text, after what background work wrote between the cells."""
    if not earlier.strip():
        return text
    title = "[written in the background since the last cell]"
    return f"{title}\n{earlier.rstrip()}\n[this cell]\n{text}"


# ------------------------------------------------------------------------------- limits


def out_of_memory(bound_bytes: int) -> str:
    """Why a kernel died."""
    return f"out of memory: the limit is {_gib(bound_bytes)}"


def killed_for_memory(count: int, bound_bytes: int) -> str:
    what = "a process was" if count == 1 else f"{count} processes were"
    return (
        f"memory ran out, and {what} killed: the limit is {_gib(bound_bytes)} for all processes "
        f"together. {_LESS_MEMORY}"
    )


def over_memory(used_bytes: int, bound_bytes: int) -> str:
    return (
        f"stopped: its processes held {_gib(used_bytes)} of memory, the limit is "
        f"{_gib(bound_bytes)} for all together. {_LESS_MEMORY}"
    )


def forks_refused(count: int, bound: int) -> str:
    times = "once" if count == 1 else f"{count} times"
    return (
        f"starting a process or thread was refused {times}: the limit is {bound} at once, threads "
        f"included. {_FEWER_PROCESSES}"
    )


def over_processes(running: int, bound: int) -> str:
    return (
        f"stopped: {running} processes and threads ran at once, the limit is {bound}. "
        f"{_FEWER_PROCESSES}"
    )


def over_cpu_time(used_s: float, bound_s: float) -> str:
    return (
        f"stopped: {used_s:.0f} s of processor time are used up, the limit is {bound_s:.0f} s for "
        "the whole session. No further cell can compute: what counts is what is in the files now."
    )


def full_files(names: Sequence[str], bound_bytes: int) -> str:
    return (
        f"no file may be larger than {_gib(bound_bytes)}, and what was written beyond that is "
        f"lost: {_some(names)}. Write less, compress it, or split it over several files."
    )


def over_disk(used_bytes: int, bound_bytes: int) -> str:
    return (
        f"stopped: workspace, home and temporary files take {_gib(used_bytes)} of disk, the limit "
        f"is {_gib(bound_bytes)}. {_LESS_DISK}"
    )


def hidden_disk(bound_bytes: int) -> str:
    """Space went that no file accounts for."""
    return (
        f"stopped: more than {_gib(bound_bytes)} of disk, the limit, went to files that can not be "
        f"seen (deleted but still open, or in closed folders). {_LESS_DISK}"
    )


def disk_full(free_bytes: int, used_bytes: int) -> str:
    return (
        f"stopped: the disk of this machine is nearly full ({_gib(free_bytes)} left) and the cell "
        f"went on writing; its files take {_gib(used_bytes)}. {_LESS_DISK}"
    )


_LESS_MEMORY = (
    "Use less at once: fewer rows or columns, smaller types, chunks, fewer parallel workers; "
    "delete what is no longer needed."
)
_FEWER_PROCESSES = "Use fewer workers (n_jobs), and end what is no longer needed."
_LESS_DISK = "Delete what is no longer needed (the next cell can), and write less."


def _gib(size: float) -> str:
    return f"{size / 2**30:.3g} GiB"
