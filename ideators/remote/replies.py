"""What a server sends back, read within bounds, and what came of one try."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import httpx2
import msgspec

from mle_ideator import __version__
from mle_ideator.errors import AgentError
from mle_ideator.ideators.serving.schema import SCHEMA_HEADER, VERSION_HEADER, digest
from mle_ideator.types import UNKNOWN_USAGE, Usage

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 30.0
_LARGEST = 4 * 2**20
_LONGEST_MESSAGE = 300


class Down(AgentError):
    """The other side does not work. Other errors say that it does."""


class TryFailed(Exception):
    """Another try may bring what this one did not."""

    def __init__(
        self, message: str, *, retry_after_s: float | None = None, used: Usage = Usage()
    ) -> None:
        super().__init__(message)
        self.used = used
        self._retry_after_s = retry_after_s

    def wait_s(self, tries: int) -> float:
        """Never shorter than the server asks for, and not the same for all of its clients."""
        if self._retry_after_s is not None:
            return self._retry_after_s * random.uniform(1.0, 1.25)
        wait: float = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2.0 ** (tries - 1))
        return wait * random.uniform(0.5, 1.0)


class Reply(NamedTuple):
    """A whole answer."""

    status: int
    headers: httpx2.Headers
    content: bytes

    @property
    def says(self) -> str:
        """Its own words on what went wrong, or its status."""
        words = " ".join(str(self._error.get("message") or f"HTTP {self.status}").split())
        return words[:_LONGEST_MESSAGE]

    @property
    def code(self) -> object:
        return self._error.get("code")

    @property
    def misunderstanding(self) -> str:
        """That the two sides do not speak the same language, if that is so."""
        if self.headers.get(SCHEMA_HEADER, digest()) == digest():
            return ""
        theirs = self.headers.get(VERSION_HEADER, "of another version")
        return (
            f"it is mle-ideator {theirs}, this is {__version__}, and they do not understand each "
            "other; install the same version on both sides."
        )

    @property
    def _error(self) -> dict[str, Any]:
        try:
            return msgspec.json.decode(self.content, type=dict[str, dict[str, Any]])["error"]
        except (msgspec.DecodeError, KeyError, RecursionError):
            return {}


async def send(client: httpx2.AsyncClient, url: str, body: bytes) -> Reply:
    """One request and its answer. Raises `TryFailed` or `Down`."""
    content = bytearray()
    try:
        async with client.stream("POST", url, content=body) as response:
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) > _LARGEST:
                    raise Down(f"{url} answers with more than {_LARGEST / 2**20:g} MiB.")
            return Reply(response.status_code, response.headers, bytes(content))
    except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
        raise TryFailed(f"it can not be reached ({line(error)})") from error
    except httpx2.RequestError as error:
        message = f"the connection broke ({line(error)})"
        raise TryFailed(message, used=UNKNOWN_USAGE) from error


def line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
