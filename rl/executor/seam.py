"""What every executor can do."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from mle_ideator.rl.executor.values import Counters, Done, Work

if TYPE_CHECKING:
    import asyncio  # workers import this package, and start faster without


class Executor(Protocol):
    """Runs work. To be used in one event loop, as an async context manager; leaving it kills what
    still runs and cancels the futures of what was not answered."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    def submit(self, work: Work) -> asyncio.Future[Done]:
        """Its answer, sooner or later: whatever goes wrong is told in it, not raised.

        Raises `UsageError` if the work can never run here.
        """
        ...

    async def cancel(self, future: asyncio.Future[Done]) -> None:
        """Cancel it (as `future.cancel()` does) and wait until nothing of it runs any more.

        Where others wait for the same work, that goes on.
        """
        ...

    def counters(self) -> Counters: ...
