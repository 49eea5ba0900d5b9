"""What a hostile cell is, and what must be observed of it.

The cells themselves are data, in `cells_*.py`, by theme. `test_cells.py` runs each on every
registered sandbox. A sandbox without walls (`local`) either shows something else there, which the
table says (`on`), or the cell is left out with the reason (`Left`), and then the sandbox must say
itself, where a user reads it, that it does not cover this.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from mle_ideator.types import Execution, SandboxLimit, Status


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What must be observed. Texts are regular expressions, searched for."""

    status: tuple[Status, ...] = ("ok",)
    hits: tuple[SandboxLimit, ...] = ()
    """Bounds of which at least one must have been hit."""
    text: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    note: tuple[str, ...] = ()
    secrets: bool = False
    """May planted secrets be in the text? Only where there are no walls."""

    def faults(self, execution: Execution) -> list[str]:
        """What is otherwise, in words."""
        found = []
        if execution.status not in self.status:
            found.append(f"status {execution.status}, not one of {self.status}")
        if self.hits and not set(self.hits) & set(execution.limits_hit):
            found.append(f"limits hit {execution.limits_hit}, not one of {self.hits}")
        found += [f"no {p!r} in the text" for p in self.text if not _found(p, execution.text)]
        found += [f"{p!r} is in the text" for p in self.never if _found(p, execution.text)]
        found += [f"no {p!r} in the note" for p in self.note if not _found(p, execution.note)]
        return found


def _found(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.MULTILINE) is not None


@dataclass(frozen=True)
class Left:
    """Not run in that sandbox, and why; `told` must occur in its `does_not_cover`."""

    reason: str
    told: str


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell of hostile code. `@name@` in it is a fact of the host (`host.Host.facts`)."""

    name: str
    code: str
    language: Literal["python", "bash"] = "python"
    limit_s: float = 10
    seen: Seen = Seen()
    on: Mapping[str, Seen | Left] = field(default_factory=dict)
    """What differs, by kind of sandbox."""
    needs: tuple[SandboxLimit, ...] = ()
    """Bounds without which it could harm the machine."""
    then: tuple[Cell, ...] = ()
    """Cells after it, each of which must show what it says."""
    settle_s: float = 0
    """Seconds to wait before the next cell."""
    restart: bool = False
    """End the kernel before the next cell must work: this one's harm is within it."""
    slow: bool = False

    def expected(self, kind: str) -> Seen | Left:
        return self.on.get(kind, self.seen)


def attempts(**routes: str) -> str:
    """Code that tries each route and prints `NAME: DONE`, or how it was refused.

    A route is refused by an exception, and so by a false `assert`.
    """
    return _ATTEMPTS.format(routes=routes)


_ATTEMPTS = """
import ctypes, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    result = libc.syscall(*arguments)
    if result < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
def check(result):
    if result < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
for name, route in {routes!r}.items():
    try:
        exec(route)
        print(f'{{name}}: DONE')
    except BaseException as error:
        print(f'{{name}}: refused by {{type(error).__name__}}: {{error}}')
"""

REFUSED = Seen(text=("refused",), never=("DONE",))
NO_WALLS = "it would do real harm where there are no walls"
"""Why a cell is left out of the local sandbox."""


def without_walls(told: str, reason: str = NO_WALLS) -> dict[str, Seen | Left]:
    return {"local": Left(reason, told)}
