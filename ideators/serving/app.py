"""The routes. What a route has to say it returns with its outcome, or raises `Refused`."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mle_ideator import __version__
from mle_ideator.errors import MleIdeatorError
from mle_ideator.ideators.answering import proposal_of
from mle_ideator.ideators.serving import chat_route, schema
from mle_ideator.ideators.serving.admission import Places
from mle_ideator.ideators.serving.answers import Gone, Refused, as_json, invalid, refusal, told
from mle_ideator.ideators.serving.body import read, skipped, unless
from mle_ideator.ideators.serving.guard import Guard
from mle_ideator.ideators.serving.metrics import Metrics
from mle_ideator.journal import writable
from mle_ideator.protocols import ChatModel, Ideator
from mle_ideator.types import HelpState

log = logging.getLogger("mle_ideator.serving")


class Answer(NamedTuple):
    """A response, and what came of the request in a word."""

    response: Response
    outcome: str


Work = Callable[[bytes], Coroutine[Any, Any, Answer]]


@dataclass
class Service:
    """An ideator behind routes."""

    ideator: Ideator
    spec: str
    guard: Guard
    places: Places
    max_bytes: int
    metrics: Metrics = field(init=False)

    def __post_init__(self) -> None:
        self.metrics = Metrics(self.places)

    def app(self) -> Starlette:
        app = Starlette(
            routes=[
                Route("/v1/ideas", self._at_work(self._idea), methods=["POST"]),
                Route("/v1/chat/completions", self._at_work(self._completion), methods=["POST"]),
                Route("/v1/models", self._shown(self._models)),
                Route("/v1/schema", self._shown(_schema)),
                Route("/metrics", self._shown(self.metrics.response)),
                Route("/health", self._health),
            ],
            exception_handlers={HTTPException: _no_such_route},
        )
        # Behind a proxy a redirect would lead to a wrong address, and the token with it.
        app.router.redirect_slashes = False
        return app

    # -------------------------------------------------------------------------------- work

    async def _idea(self, body: bytes) -> Answer:
        try:
            state = msgspec.json.decode(body, type=HelpState)
        except (msgspec.DecodeError, RecursionError) as error:
            raise invalid(error) from error
        async with self.places.turn():
            proposal = await proposal_of(self.ideator, state)
        self.metrics.spend(proposal.usage)
        kind = "idea" if proposal.idea else "malformed_idea" if proposal.malformed else "no_idea"
        return Answer(as_json(proposal), kind)

    async def _completion(self, body: bytes) -> Answer:
        model = self._model()
        ask = chat_route.read(body)
        async with self.places.turn():
            completion = writable(await model.complete(ask.conversation(), ask.options()))
        self.metrics.spend(completion.usage)
        return Answer(chat_route.written(ask, completion, model.name), "completion")

    def _model(self) -> ChatModel:
        model = getattr(self.ideator, "model", None)
        if model is None:
            message = f"the ideator {self.spec!r} is no chat model; ask it with POST /v1/ideas."
            raise Refused(404, "no_chat_model", message)
        chat: ChatModel = model
        return chat

    def _models(self) -> Response:
        model = self._model()
        return chat_route.models(model.name, model.context_tokens)

    async def _health(self, request: Request) -> Response:
        """Whoever may not ask for ideas learns only whether the server is there."""
        draining = self.places.draining
        health = {"status": "draining" if draining else "ok"}
        if self.guard.admits(request.headers):
            health |= {"ideator": self.spec, "version": __version__, "schema": schema.digest()}
        return as_json(health, 503 if draining else 200)

    # ----------------------------------------------------------------------- around the work

    def _shown(self, show: Callable[[], Response]) -> Callable[[Request], Awaitable[Response]]:
        """A page for those who may ask."""

        async def endpoint(request: Request) -> Response:
            try:
                self.guard.check(request.headers)
                return show()
            except Refused as refused:
                return told(refused)

        return endpoint

    def _at_work(self, work: Work) -> Callable[[Request], Awaitable[Response]]:
        """Let a request in, read it, have it answered, count it."""

        async def endpoint(request: Request) -> Response:
            start, route = time.monotonic(), request.url.path
            try:
                answer = await self._served(request, work)
            except Gone as gone:
                self.metrics.count(route, gone.code)
                return Response(status_code=400)  # nobody reads it
            except Refused as refused:
                self.metrics.count(route, refused.code)
                # What is still being sent is read past afterwards, unless the connection is closed:
                # closing it on a client that still sends would lose the answer.
                close = "expect" in request.headers or (
                    refused.code == "draining" and await skipped(request)
                )
                return _signed(told(refused, close=close), refused.status != 401)
            self.metrics.count(route, answer.outcome, time.monotonic() - start)
            return _signed(answer.response)

        return endpoint

    async def _served(self, request: Request, work: Work) -> Answer:
        self.guard.check(request.headers)
        try:
            with self.places.place():
                body = await read(request, self.max_bytes)
                return await unless(request, self.places.over(), work(body))
        except (Refused, Gone):
            raise
        except MleIdeatorError as error:
            refused = refusal(error)
            log.warning("%s: %s", refused.code, refused.message)
            raise refused from error
        except Exception as error:
            log.exception("a request was answered with 500")
            message = f"internal error ({type(error).__name__}); the server's log has the details."
            raise Refused(500, "internal", message) from error


def _signed(response: Response, known: bool = True) -> Response:
    """With what the answer was written by, for those who may know."""
    if known:
        response.headers.update(schema.headers())
    return response


def _schema() -> Response:
    return as_json({"version": __version__, "schema": schema.digest(), **schema.schemas()})


async def _no_such_route(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    there = "POST /v1/ideas, POST /v1/chat/completions, GET /v1/schema, /health and /metrics"
    response = told(
        Refused(status, "no_such_route", f"no {request.method} here; there is {there}.")
    )
    if isinstance(error, HTTPException) and error.headers:
        response.headers.update(error.headers)
    return response
