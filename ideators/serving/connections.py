"""A connection on which nothing is asked does not stay: uvicorn itself bounds neither the time that
a request's headers take nor what is sent after a request was refused."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

IDLE_S = 10.0
"""A connection is closed when no whole request was on it for so long."""


class BoundedProtocol(H11Protocol):
    """Closes the connection of a client that is slow to ask."""

    _due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._due:
            self._due.cancel()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if self._due is None and not self._asked:
            self._due = self.loop.call_later(IDLE_S, self._look)

    def _look(self) -> None:
        self._due = None
        if not self._asked and not self.transport.is_closing():
            self.transport.close()

    @property
    def _asked(self) -> bool:
        """Is a request being answered?"""
        return self.cycle is not None and not self.cycle.response_complete
