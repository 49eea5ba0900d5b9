"""What an executor is asked for, and what it answers."""

from __future__ import annotations

import hashlib
from typing import Literal

from mle_ideator.errors import UsageError
from mle_ideator.types import Value

Status = Literal["ok", "error", "timeout", "died", "infra_error"]
"""*ok*: the function returned. *error*: it raised. *timeout*: it was killed when its time was up.
*died*: it ended its worker process again and again. *infra_error*: the runtime broke each time that
it was tried, which says nothing about the work."""


class NotFinal(bytes):
    """Returned by a function instead of `bytes`: an answer that is not to be kept in the cache."""


class Resources(Value, frozen=True, kw_only=True):
    """What one work takes while it runs. A budget of the executor's: it starts only where so much
    is free, but is not held to it."""

    cores: int = 1
    memory_gib: float | None = None
    """`None` is counted as nothing."""
    gpus: int = 0
    """Whole ones; the function sees these and no others (`CUDA_VISIBLE_DEVICES`)."""


class Work(Value, frozen=True, kw_only=True):
    """One call of a function in a worker process."""

    function: str
    """`package.module:name` of a plain function `(argument: bytes, inputs: list[Path]) -> bytes`
    that can be imported. It raises `RuntimeFailure` if the runtime, not the work, is at fault."""
    argument: bytes = b""
    key: str | None = None
    """What decides the result of this function. Work with the same one is run once at a time, and
    its result is kept. `None`: neither."""
    inputs: tuple[str, ...] = ()
    """Regular files of this machine, only to be read; given as paths that hold where it runs."""
    limit_s: float
    """Seconds of execution, after which it is killed with all that it started. Neither waiting nor
    importing the function's module counts."""
    resources: Resources = Resources()

    @property
    def identity(self) -> str | None:
        """SHA-256, in hex, of function and key; `None` without a key."""
        if self.key is None:
            return None
        return hashlib.sha256(f"{self.function}\0{self.key}".encode()).hexdigest()


class Done(Value, frozen=True, kw_only=True):
    """What became of a work."""

    status: Status
    value: bytes = b""
    """What the function returned."""
    detail: str = ""
    """Why there is no value, in words; the first line says it all."""
    seconds: float = 0.0
    """Of execution, in the last try; 0 if it came from the cache."""
    waited_s: float = 0.0
    """From `submit` to the answer, without those."""
    tries: int = 0
    """Executions that were begun."""
    cached: bool = False
    node: str = ""
    """Host name, or id of Ray's node."""


class Counters(Value, frozen=True, kw_only=True):
    """Where everything that was submitted stands."""

    waiting: int
    running: int
    done: int
    """Executed, and ok."""
    failed: dict[str, int]
    """By status."""
    cache_hits: int
    merged: int
    """Answered by the execution of another one with the same key."""
    retried: int
    """Tries after the first."""


def require_sound(work: Work) -> None:
    """Raise `UsageError` if nobody could run it."""
    module, colon, name = work.function.partition(":")
    if not (colon and name.isidentifier() and module != "__main__" and module):
        raise UsageError(
            f"{work.function!r} is no function that a worker can import; give 'package.module:name'"
        )
    if not work.limit_s > 0:
        raise UsageError(f"the limit of a work is {work.limit_s!r} seconds; it must be above 0.")
    asked = work.resources
    if asked.cores < 0 or asked.gpus < 0 or (asked.memory_gib or 0) < 0 or not _some(asked):
        raise UsageError(f"a work can not take {asked}; give at least one core or GPU.")


def _some(asked: Resources) -> bool:
    return asked.cores + asked.gpus > 0
