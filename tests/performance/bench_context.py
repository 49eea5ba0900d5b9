"""What a long session sends to its model: total tokens, the largest request, the repeated share.

    python -m tests.performance.bench_context [STEPS]

A real session of 200 steps by the CodeAct implementer, each with 2 kB of output. Targets at the
default budget of 60,000 tokens: the total grows linearly, no request is larger than the budget, at
least 90 % of the tokens lie in a prefix that is identical to an earlier request's.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, takewhile

from mle_ideator.context import size
from mle_ideator.messages import Message
from tests.performance.long_session import play_somewhere

BUDGETS = (16_000, 32_000, 60_000, 120_000)

Key = tuple[object, ...]


@dataclass
class Sent:
    """All requests so far, as a tree of messages."""

    next: dict[Key, Sent] = field(default_factory=dict)

    def add(self, request: Sequence[Message]) -> tuple[int, int]:
        """Tokens of a request, and how many of them lie in a prefix of an earlier one."""
        node, known, new = self, 0, False
        for message in request:
            key = (message.role, message.text, message.calls, message.call_id)
            if not new and key in node.next:
                known += size([message])
            elif not new:
                known += int(size([message]) * _shared(message.text, node.next))
                new = True
            node = node.next.setdefault(key, Sent())
        return size(request), known


def _shared(text: str, others: Iterable[Key]) -> float:
    """Which part of a text begins like one of the others."""
    pairs = (zip(text, str(other[1]), strict=False) for other in others)
    longest = max((sum(1 for _ in takewhile(_same, pair)) for pair in pairs), default=0)
    return longest / max(1, len(text))


def _same(pair: tuple[str, str]) -> bool:
    return pair[0] == pair[1]


def measured(requests: Iterable[Sequence[Message]]) -> tuple[list[int], list[int]]:
    """Tokens of each request, and how many of them were sent before in the same place."""
    sent = Sent()
    pairs = [sent.add(request) for request in requests]
    return [total for total, _ in pairs], [known for _, known in pairs]


async def main(steps: int) -> None:
    marks = [steps // 4, steps // 2, steps * 3 // 4, steps]
    print("tokens by step  " + "".join(f"{mark:>12}" for mark in marks) + "     largest  repeated")
    for budget in BUDGETS:
        watch = await play_somewhere(steps, budget)
        sizes, known = measured(watch.requests)
        totals = list(accumulate(sizes))
        print(
            f"budget {budget:>9,}" + "".join(f"{totals[mark - 1]:>12,}" for mark in marks), end=""
        )
        print(f"{max(sizes):>12,}  {sum(known) / sum(sizes):>8.1%}")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
