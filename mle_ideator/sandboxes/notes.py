"""What the runtime adds to a cell's output, in words for the agent."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from mle_ideator.sandboxes.output import one_line
from mle_ideator.sandboxes.processes import Process

_SHOWN = 5
_LONGEST = 500
_BACKGROUND = "nohup python train.py > train.log 2>&1 &"


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


def timeout(duration_s: float, limit_s: float, kept: bool) -> str:
    state = (
        "it was interrupted and variables are kept"
        if kept
        else "it did not react to an interrupt and was killed: variables and background processes "
        "are gone, files are still there, and the next cell gets a new kernel"
    )
    return (
        f"stopped after {duration_s:.1f} s, the limit for this cell is {limit_s:.1f} s; {state}. "
        "Shorten it (fewer rows, folds or iterations), or run it in the background "
        f"(bash: `{_BACKGROUND}`) and look at its log in later cells."
    )


def inputs_restored(names: Sequence[str]) -> list[str]:
    return _named("inputs are read-only: put back what the cell had changed or removed", names)


def inputs_lost(names: Sequence[str]) -> list[str]:
    return _named("inputs that were changed or removed could not be put back", names)


def _named(what: str, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    return [f"{what} ({', '.join(names[:_SHOWN])}{', ...' if len(names) > _SHOWN else ''})"]


def with_earlier(earlier: str, text: str) -> str:
    """A cell's text, after what background work wrote between the cells."""
    if not earlier.strip():
        return text
    title = "[written in the background since the last cell]"
    return f"{title}\n{earlier.rstrip()}\n[this cell]\n{text}"
