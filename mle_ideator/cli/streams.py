"""Who writes where: stdout carries what a command is asked for, stderr all the rest."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


@contextmanager
def stdout_kept_clean() -> Iterator[TextIO]:
    """The real stdout; what is printed meanwhile, by whatever means, goes to stderr."""
    sys.stdout.flush()
    wire = os.dup(1)
    os.dup2(2, 1)
    try:
        with os.fdopen(os.dup(wire), "w", encoding="utf-8") as out:
            yield out
    finally:
        sys.stdout.flush()
        os.dup2(wire, 1)
        os.close(wire)


def say(line: str) -> None:
    print(f"mle-ideator: {line}", file=sys.stderr, flush=True)
