"""What the processes of one launch (`torchrun`, `accelerate launch`) agree on.

Help states, rollouts and the buffer are the main process's; the others are told what came of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from accelerate.utils import broadcast_object_list, gather_object

from mle_ideator.errors import MleIdeatorError

T = TypeVar("T")


def process() -> int:
    """Number of this process, as launchers tell it; 0 is the main one."""
    return int(os.environ.get("RANK", "0"))


def processes() -> int:
    """How many there are."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def agreed(work: Callable[[], T]) -> T:
    """What `work` gives in the main process, in all of them; what it raises, too.

    All processes must call this in the same order, with their own `work`.
    """
    told: list[Any] = [None, None]
    if process() == 0:
        try:
            told[0] = work()
        except MleIdeatorError as error:
            told[1] = error
    if processes() > 1:
        broadcast_object_list(told)
    if told[1] is not None:
        raise told[1]
    found: T = told[0]
    return found


def of_all(values: Sequence[T]) -> list[T]:
    """The values of all processes, in their order."""
    together: list[T] = gather_object(list(values)) if processes() > 1 else list(values)
    return together
