"""A real HTTP server on loopback that speaks three dialects and misbehaves on command.

    with MisbehavingServer() as server:
        server.will("busy", "cut", "ok")        # one a request; after the last one: ok
        ... ask a model at f"{server.url}/v1" ...
        server.requests[0].body                 # what was asked

`/v1/chat/completions`, `/v1/responses` and `/v1/messages` take part; `/v1/models` is served only if
`served` is set.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Self

import uvicorn

from tests.chat.dialects import DIALECTS, Dialect, Reply

Act = Callable[["Exchange"], Awaitable[None]]
SHORT_WAIT_S = 0.2
"""What `retry_after` asks for, and how long `slow` takes."""


@dataclass(frozen=True)
class Request:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class Exchange:
    """One request, and the means to answer it."""

    request: Request
    dialect: Dialect
    receive: Callable[[], Awaitable[dict[str, Any]]]
    send: Callable[[dict[str, Any]], Awaitable[None]]

    async def start(self, status: int, kind: str, headers: dict[str, str] | None = None) -> None:
        told = {"content-type": kind, **(headers or {})}
        encoded = [(k.encode(), v.encode()) for k, v in told.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": encoded})

    async def write(self, text: str, *, more: bool = True) -> None:
        body = text.encode()
        await self.send({"type": "http.response.body", "body": body, "more_body": more})

    async def reply(self, reply: Reply) -> None:
        await self.start(200, "text/event-stream")
        for event in self.dialect.events(reply):
            await self.write(event)
        await self.write("", more=False)

    async def half(self) -> None:
        """The first half of a good answer."""
        await self.start(200, "text/event-stream")
        events = self.dialect.events(Reply())
        for event in events[: len(events) // 2]:
            await self.write(event)

    async def fail(
        self, status: int, message: str, code: str = "", headers: dict[str, str] | None = None
    ) -> None:
        await self.start(status, "application/json", headers)
        await self.write(json.dumps(self.dialect.error(message, code)), more=False)

    async def until_gone(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass


class Cut(Exception):
    """Makes the server drop the connection."""


def says(**reply: Any) -> Act:
    return lambda exchange: exchange.reply(Reply(**reply))


def fails(status: int, message: str, code: str = "", **headers: str) -> Act:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda exchange: exchange.fail(status, message, code, named)


async def _slow(exchange: Exchange) -> None:
    await asyncio.sleep(SHORT_WAIT_S)
    await exchange.reply(Reply())


async def _stall(exchange: Exchange) -> None:
    await exchange.half()
    await exchange.until_gone()


async def _silence(exchange: Exchange) -> None:
    await exchange.until_gone()


async def _cut(exchange: Exchange) -> None:
    await exchange.half()
    raise Cut


async def _early_end(exchange: Exchange) -> None:
    await exchange.half()
    await exchange.write("", more=False)


async def _garbage(exchange: Exchange) -> None:
    await exchange.start(200, "text/event-stream")
    await exchange.write('event: message_start\ndata: {"choices": [{"del\n\n', more=False)


async def _odd_json(exchange: Exchange) -> None:
    await exchange.start(200, "text/event-stream")
    text = '{"type": "message_start", "choices": 5}'
    await exchange.write(f"event: message_start\ndata: {text}\n\n", more=False)


async def _page(exchange: Exchange) -> None:
    await exchange.start(200, "text/html")
    await exchange.write("<html>Welcome</html>", more=False)


async def _error_in_stream(exchange: Exchange) -> None:
    await exchange.half()
    await exchange.write(exchange.dialect.error_in_stream("Overloaded", "overloaded_error"))
    await exchange.write("", more=False)


async def _overflow(exchange: Exchange) -> None:
    await exchange.fail(*exchange.dialect.overflow)


WORDS = {
    "temperature": {"temperature"},
    "stop": {"stop", "stop_sequences"},
    "seed": {"seed"},
    "effort": {"reasoning_effort", "reasoning", "thinking"},
    "json_schema": {"response_format", "text", "output_config"},
    "tools": {"tools"},
}
"""What asks for an option in some dialect."""


def refuses(option: str) -> Act:
    """Refuse an option of `CallOptions` in the words of the dialect, if it is asked for."""

    async def act(exchange: Exchange) -> None:
        if WORDS[option] & exchange.request.body.keys():
            await exchange.fail(400, exchange.dialect.refused[option])
        else:
            await exchange.reply(Reply())

    return act


ACTS: dict[str, Act] = {
    "ok": says(),
    "busy": fails(429, "Too many requests", "rate_limit_error"),
    "retry_after": fails(429, "Too many requests", retry_after=str(SHORT_WAIT_S)),
    "long_retry_after": fails(429, "Too many requests", retry_after="3600"),
    "no_credit": fails(429, "You exceeded your current quota.", "insufficient_quota"),
    "broken": fails(500, "The server had an error", "server_error"),
    "bad_gateway": fails(502, "Bad gateway"),
    "overloaded": fails(529, "Overloaded", "overloaded_error"),
    "slow": _slow,
    "stall": _stall,
    "silence": _silence,
    "cut": _cut,
    "early_end": _early_end,
    "garbage": _garbage,
    "odd_json": _odd_json,
    "page": _page,
    "error_in_stream": _error_in_stream,
    "empty": says(text=""),
    "overflow": _overflow,
    "no_usage": says(usage=False),
    "wrong_key": fails(401, "Incorrect API key provided: sk-se…t1.", "invalid_api_key"),
    "no_model": fails(404, "The model `m` does not exist.", "model_not_found"),
    "odd_request": fails(400, "messages: something that nobody has seen before"),
    "reasoning": says(reasoning="Let me think."),
    "call": says(text="", call=("call_7", "run", '{"code": "1 + 1"}')),
    "bad_call": says(text="", call=("call_7", "run", '{"code": "1 + ')),
    "length": says(text="Hello th", finish="length"),
    "all_reasoning": says(text="", reasoning="Let me think.", finish="length"),
    "refusal": says(text="I will not.", finish="refused"),
}


@dataclass
class MisbehavingServer:
    """See above. Requests are answered in the order in which they come."""

    requests: list[Request] = field(default_factory=list)
    served: list[dict[str, Any]] | None = None
    """The models that `/v1/models` tells of."""
    _plan: list[Act] = field(default_factory=list)

    def will(self, *acts: str | Act) -> None:
        self._plan += [ACTS[act] if isinstance(act, str) else act for act in acts]

    def forget(self) -> None:
        self.requests.clear()
        self._plan.clear()
        self.served = None

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [request.body for request in self.requests]

    def __enter__(self) -> Self:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        config = uvicorn.Config(
            self._app,
            interface="asgi3",
            log_level=60,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        request = await _read(scope, receive)
        dialect = next((d for d in DIALECTS if request.path == f"/v1{d.path}"), DIALECTS[0])
        exchange = Exchange(request, dialect, receive, send)
        if request.path == "/v1/models":
            await self._models(exchange)
            return
        self.requests.append(request)
        act = self._plan.pop(0) if self._plan else ACTS["ok"]
        await act(exchange)

    async def _models(self, exchange: Exchange) -> None:
        if self.served is None:
            await exchange.fail(404, "Not found")
            return
        await exchange.start(200, "application/json")
        await exchange.write(json.dumps({"object": "list", "data": self.served}), more=False)


async def _read(scope: Any, receive: Any) -> Request:
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    headers = {name.decode(): value.decode() for name, value in scope["headers"]}
    return Request(scope["path"], headers, json.loads(body) if body else {})
