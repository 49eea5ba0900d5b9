"""Calls over streamable HTTP, for agents that find this process running."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from mle_ideator.ideators.mcp_server.tool import SeekHelpTool
from mle_ideator.ideators.serving.answers import Refused, told
from mle_ideator.ideators.serving.guard import Guard

PATH = "/mcp"
GRACE_S = 10.0
"""At the end calls in flight get so long."""
_SEND_S = 2


async def serve(
    tool: SeekHelpTool, guard: Guard, listener: socket.socket, ready: Callable[[], None]
) -> None:
    """Answer until a signal comes; `ready` is called once all is up."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    host = listener.getsockname()[0]
    app = _Guarded(tool.server.streamable_http_app(streamable_http_path=PATH, host=host), guard)
    server = _Server(_config(app))
    running = asyncio.create_task(server.serve(sockets=[listener]))
    async with tool.server.session_manager.run():
        ready()
        stopping = asyncio.create_task(stopped.wait())
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(app.idle.wait(), GRACE_S)
        app.ended = True
    # Only now, as streams that agents keep open have ended with their sessions.
    server.should_exit = True
    await running
    await tool.aclose()


def _config(app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_SEND_S,
    )


class _Server(uvicorn.Server):
    """Leaves signals to `serve`."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Guarded:
    """An application that only those reach whom the guard lets in."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self.idle = asyncio.Event()
        """Set while no call is being answered."""
        self.idle.set()
        self.ended = False
        self._calls = 0
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._guard.check(Headers(scope=scope))
            if self.ended:
                raise Refused(503, "draining", "this server is about to stop.")
        except Refused as refused:
            await told(refused, close=True)(scope, receive, send)
            return
        with self._call() if scope["method"] == "POST" else contextlib.nullcontext():
            await self._app(scope, receive, send)

    @contextlib.contextmanager
    def _call(self) -> Iterator[None]:
        self._calls += 1
        self.idle.clear()
        try:
            yield
        finally:
            self._calls -= 1
            if not self._calls:
                self.idle.set()
