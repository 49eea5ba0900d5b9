"""A circuit breaker: what failed several times in a row is left alone for a while."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mle_ideator.errors import AgentError
from mle_ideator.ideators.remote.replies import Down


class Breaker:
    """Closed, it lets every call through. After `failures` in a row it is open for `open_s`
    seconds, and calls fail at once. Then one call may try: it closes the breaker, or opens it
    again."""

    def __init__(
        self,
        name: str,
        failures: int = 3,
        open_s: float = 30.0,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name, self._most, self._open_s, self._now = name, failures, open_s, now
        self._failures = 0
        self._opened = 0.0
        self._probing = False

    @contextmanager
    def call(self) -> Iterator[None]:
        """Raises `AgentError` if the breaker is open; counts what `Down` is raised inside."""
        if self._failures < self._most:
            yield from self._counted()
            return
        left = self._opened + self._open_s - self._now()
        if self._probing or left > 0:
            when = f"for another {left:.0f} s" if left > 0 else "while another request tries it"
            raise AgentError(
                f"{self._name} failed {self._failures} times in a row and is not asked {when}."
            )
        self._probing = True
        try:
            yield from self._counted()
        finally:
            self._probing = False

    def _counted(self) -> Iterator[None]:
        try:
            yield
        except Down:
            self._failures += 1
            self._opened = self._now()
            raise
        except AgentError:
            self._failures = 0
            raise
        self._failures = 0
