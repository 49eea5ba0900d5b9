"""A service from its first request to an end that loses nothing.

The first SIGTERM or SIGINT lets nobody in any more (503, so that a balancer goes elsewhere), waits
for those that are in, and ends with exit code 0; the second ends the process at once.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable

from mle_ideator.ideators.serving.app import Service
from mle_ideator.ideators.serving.process import Server, signals, until_told
from mle_ideator.waiting import release

log = logging.getLogger("mle_ideator.serving")


async def serve(
    service: Service, listener: socket.socket, ready: Callable[[], None], grace_s: float
) -> None:
    """Answer until a signal comes, then end in order; `ready` is called once all is up."""
    server = Server(service.app(), ready)
    with signals() as told:
        running = await until_told(server, listener, told)
        if told.is_set() and (cut := await service.places.drain(grace_s)):
            log.warning("%d requests were not finished within %g s", cut, grace_s)
        server.should_exit = True
        await running
    await release(service.ideator)
