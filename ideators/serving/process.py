"""What every server of this project is made of: uvicorn within bounds, and its signals.

The first SIGTERM or SIGINT is told to whoever waits for it, the second ends the process at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn
from starlette.types import ASGIApp

from mle_ideator.ideators.serving.connections import BoundedProtocol

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_SEND_S = 5
"""What is left for answers to reach their clients once all are written."""


class Server(uvicorn.Server):
    """An application on a socket; it leaves signals to others, and says when it is up."""

    def __init__(self, app: ASGIApp, ready: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=BoundedProtocol,
                ws="none",
                loop="asyncio",
                lifespan="off",
                log_config=None,
                # Warnings tell of broken requests: whoever reaches the port could flood the log.
                log_level=logging.ERROR,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=_SEND_S,
            )
        )
        self._ready = ready

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


@contextlib.contextmanager
def signals() -> Iterator[asyncio.Event]:
    """Set by the first signal. The next one has its default effect, even if the loop is busy."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    heeded = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]

    def handle(number: int, _: object) -> None:
        for each in heeded:
            signal.signal(each, signal.SIG_DFL)
        loop.call_soon_threadsafe(told.set)

    before = {each: signal.signal(each, handle) for each in heeded}
    try:
        yield told
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


async def until_told(
    server: Server, listener: socket.socket, told: asyncio.Event
) -> asyncio.Task[None]:
    """Start a server, wait for a signal (or for the server's own end); its task."""
    running = asyncio.create_task(server.serve(sockets=[listener]))
    waiting = asyncio.create_task(told.wait())
    await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    return running
