"""What a proposal may still cost, and what it has used."""

from __future__ import annotations

from dataclasses import dataclass

from mle_ideator.types import Usage


@dataclass
class Purse:
    """The bill of a proposal, or of a part of it; of a failed call, what may be charged for it."""

    left_usd: float | None
    """What was left before the proposal; `None` without a limit."""
    used: Usage = Usage()

    @property
    def cap_usd(self) -> float | None:
        """The most that the next call may cost; `None` without a limit."""
        if self.left_usd is None:
            return None
        return max(0.0, self.left_usd - (self.used.at_most_usd or 0.0))

    def shares(self, number: int) -> list[Purse]:
        """Purses for so many calls at the same time: together they never pass the limit."""
        cap = self.cap_usd
        return [Purse(None if cap is None else cap / number) for _ in range(number)]

    def settle(self, usage: Usage) -> None:
        self.used += usage
