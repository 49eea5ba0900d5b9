"""Bounds of a session, and what is left of them, on one monotonic clock."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable

from mle_ideator.errors import UsageError
from mle_ideator.types import N, Outcome, Remaining, Usage, Value


class Limits(Value, frozen=True, kw_only=True):
    """What a session may use."""

    steps: int = 20
    """Actions of the implementer, help requests among them."""
    help_requests: int = 10
    """Ideas it may ask for."""
    time_s: float = 3600.0
    """Seconds for the whole session, the clean re-run at its end included."""
    step_time_s: float = 600.0
    """Seconds a cell may take."""
    tokens: int | None = None
    """Tokens that both agents' models may use, in and out."""
    cost_usd: float | None = None
    """What both agents' models may cost. A call that could pass it is not made."""

    def __post_init__(self) -> None:
        for name in ("steps", "time_s", "step_time_s", "tokens", "cost_usd"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise UsageError(f"limit {name!r} must be more than 0, and finite.")
        if self.help_requests < 0:
            raise UsageError("limit 'help_requests' must be 0 or more.")


class Clock:
    """Seconds since the session began, and what of the limits is left.

    A reserve is kept back for the clean re-run at the end: a tenth of the time, or one and a half
    times the slowest solution so far, but never more than half of the time.
    """

    def __init__(
        self, limits: Limits, now: Callable[[], float] = time.monotonic, elapsed_s: float = 0.0
    ) -> None:
        self.limits = limits
        self._now = now
        self._start = now() - elapsed_s
        self._slowest_solution_s = 0.0

    @property
    def elapsed_s(self) -> float:
        return self._now() - self._start

    @property
    def left_s(self) -> float:
        """Seconds until the very end, never negative."""
        return max(0.0, self.limits.time_s - self.elapsed_s)

    @property
    def reserve_s(self) -> float:
        wanted = max(0.1 * self.limits.time_s, 1.5 * self._slowest_solution_s)
        return min(wanted, 0.5 * self.limits.time_s)

    def solution_took(self, seconds: float) -> None:
        self._slowest_solution_s = max(self._slowest_solution_s, seconds)

    def remaining(self, steps: int, help_requests: int, usage: Usage = Usage()) -> Remaining:
        """What is left after so many steps and help requests, and what models have used."""
        seconds = max(0.0, self.left_s - self.reserve_s)
        return Remaining(
            steps=self.limits.steps - steps,
            help_requests=self.limits.help_requests - help_requests,
            seconds=seconds,
            step_seconds=min(self.limits.step_time_s, seconds),
            tokens=_left(self.limits.tokens, usage.tokens),
            cost_usd=_left(self.limits.cost_usd, usage.at_most_usd),
        )


def used_up(remaining: Remaining) -> Outcome | None:
    """Which limit is reached, if one is."""
    if remaining.steps <= 0:
        return "steps"
    if remaining.seconds <= 0:
        return "time"
    if remaining.tokens is not None and remaining.tokens <= 0:
        return "tokens"
    if remaining.cost_usd is not None and remaining.cost_usd <= 0:
        return "cost"
    return None


def _left(limit: N | None, used: N | None) -> N | None:
    return None if limit is None else max(type(limit)(0), limit - (used or 0))


_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(text: str) -> float:
    """`90`, `90s`, `15m`, `1h30m` as seconds. Raises `UsageError`."""
    if re.fullmatch(r"\s*(\d+(\.\d+)?\s*[smhd]\s*)+|\s*\d+(\.\d+)?\s*", text):
        parts = re.findall(r"(\d+(?:\.\d+)?)\s*([smhd]?)", text)
        return float(sum(float(number) * _UNITS[unit] for number, unit in parts))
    raise UsageError(f"{text!r} is no duration; write seconds, or 15m, 8h, 1h30m.")
