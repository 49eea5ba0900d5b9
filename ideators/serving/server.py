"""The process: a socket, uvicorn, signals, and an end that loses nothing.

The first SIGTERM or SIGINT lets nobody in any more (503, so that a balancer goes elsewhere), waits
for those that are in, and ends with exit code 0; the second ends the process at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn

from mle_ideator.ideators.serving.app import Service
from mle_ideator.ideators.serving.connections import BoundedProtocol

log = logging.getLogger("mle_ideator.serving")

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_SEND_S = 5
"""What is left for answers to reach their clients once all are written."""


async def serve(
    service: Service, listener: socket.socket, ready: Callable[[], None], grace_s: float
) -> None:
    """Answer until a signal comes, then end in order; `ready` is called once all is up."""
    server = _Server(
        uvicorn.Config(
            service.app(),
            http=BoundedProtocol,
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_SEND_S,
        )
    )
    server.ready = ready
    with _signals() as told:
        running = asyncio.create_task(server.serve(sockets=[listener]))
        ending = asyncio.create_task(told.wait())
        await asyncio.wait({running, ending}, return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        if told.is_set() and (cut := await service.places.drain(grace_s)):
            log.warning("%d requests were not finished within %g s", cut, grace_s)
        server.should_exit = True
        await running
    if close := getattr(service.ideator, "aclose", None):
        await close()


class _Server(uvicorn.Server):
    """Leaves signals to `serve`, and says when it is up."""

    ready: Callable[[], None]

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready()


@contextlib.contextmanager
def _signals() -> Iterator[asyncio.Event]:
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
