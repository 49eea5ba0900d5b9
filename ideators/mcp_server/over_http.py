"""Calls over streamable HTTP, for agents that find this process running.

Nothing is kept between calls, so there are no sessions and no streams that wait: POST only.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mle_ideator.ideators.mcp_server.half_characters import mended
from mle_ideator.ideators.mcp_server.tool import SeekHelpTool
from mle_ideator.ideators.serving.admission import Places
from mle_ideator.ideators.serving.answers import Gone, Refused, told
from mle_ideator.ideators.serving.body import read
from mle_ideator.ideators.serving.guard import Guard
from mle_ideator.ideators.serving.process import Server, signals, until_told

PATH = "/mcp"
GRACE_S = 10.0
"""At the end calls in flight get so long."""
MOST_CALLS = 64
"""So many at once; more are told to come back."""
MAX_BYTES = 4 * 2**20


async def serve(
    tool: SeekHelpTool, guard: Guard, listener: socket.socket, ready: Callable[[], None]
) -> None:
    """Answer until a signal comes; `ready` is called once all is up."""
    app = _Guarded(_app(tool, guard), guard)
    server = Server(app, ready)
    with signals() as signalled:
        async with tool.server.session_manager.run():
            running = await until_told(server, listener, signalled)
            await app.places.drain(GRACE_S)
        server.should_exit = True
        await running
    await tool.aclose()


def _app(tool: SeekHelpTool, guard: Guard) -> ASGIApp:
    app = tool.server.streamable_http_app(
        streamable_http_path=PATH,
        stateless_http=True,
        max_request_body_size=MAX_BYTES,
        # Who has the token is no web page, and may come through a proxy, by any name.
        transport_security=None
        if guard.local_only
        else TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    app.router.redirect_slashes = False
    return app


class _Guarded:
    """An application that only those reach whom the guard lets in, so many at once."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self.places = Places(MOST_CALLS, queue=0, deadline_s=GRACE_S)
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            self._guard.check(request.headers)
            if request.method != "POST":
                raise Refused(405, "no_sessions", "nothing is kept here: POST only.")
            with self.places.place():
                body = await read(request, MAX_BYTES)
                async with self.places.turn():
                    whole = mended(body.decode(errors="replace")).encode()
                    await self._app(scope, _again(whole, receive), send)
        except Refused as refused:
            await told(refused, close=True)(scope, receive, send)
        except Gone:
            await Response(status_code=400)(scope, receive, send)  # nobody reads it


def _again(body: bytes, receive: Receive) -> Receive:
    """Receives a body that was read already, then what comes after it."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_one() -> Message:
        return messages.pop() if messages else await receive()

    return next_one
