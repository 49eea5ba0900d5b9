"""Reading a request's body within bounds of size and time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import Request

from mle_ideator.ideators.serving.answers import Gone, Refused

T = TypeVar("T")

SLOWEST_S = 30.0
"""A body that takes longer is refused."""
_SKIP_S = 1.0


async def read(request: Request, most: int) -> bytes:
    """The whole body. Raises `Refused` (too large, too slow, no JSON) or `Gone`."""
    _check_headers(request, most)
    body, more = bytearray(), True
    try:
        async with asyncio.timeout(SLOWEST_S):
            while more:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise Gone
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > most:
                    raise _too_large(most)
    except TimeoutError as error:
        told = f"the request did not arrive within {SLOWEST_S:g} s."
        raise Refused(408, "too_slow", told) from error
    return bytes(body)


def _check_headers(request: Request, most: int) -> None:
    headers = request.headers
    if int(headers.get("content-length", "0")) > most:
        raise _too_large(most)
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" or headers.get("content-encoding", "identity") != "identity":
        message = "the request must be Content-Type: application/json, not compressed."
        raise Refused(415, "not_json", message)


async def skipped(request: Request) -> bool:
    """Read past a body of which nothing was read; did it come to its end?"""
    try:
        async with asyncio.timeout(_SKIP_S):
            while (await request.receive()).get("more_body", False):
                pass
    except TimeoutError:
        return False
    return True


async def unless(
    request: Request, over: Coroutine[Any, Any, None], work: Coroutine[Any, Any, T]
) -> T:
    """What `work` brings. It is cancelled when the client goes away (`Gone`) or at `over`."""
    gone = asyncio.ensure_future(_disconnect(request))
    ends = asyncio.ensure_future(over)
    done = asyncio.ensure_future(work)
    try:
        await asyncio.wait({done, gone, ends}, return_when=asyncio.FIRST_COMPLETED)
        if done.done():
            return done.result()
        if gone.done():
            raise Gone
        raise Refused(503, "stopped", "this server had to stop.", retry_after_s=5.0)
    finally:
        for task in (done, gone, ends):
            task.cancel()
        await asyncio.gather(done, gone, ends, return_exceptions=True)


async def _disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _too_large(most: int) -> Refused:
    return Refused(
        413, "too_large", f"the request is larger than {most / 2**20:g} MiB, the most here."
    )
