"""What a server sends back, read within bounds, and what came of one try."""

from __future__ import annotations

import random
from collections.abc import Collection
from typing import Any, NamedTuple

import httpx2
import msgspec

from mle_ideator import __version__
from mle_ideator.errors import AgentError
from mle_ideator.idea_form import MAX_PART_CHARS, well_formed, wrong_revert
from mle_ideator.ideators.serving.schema import SCHEMA_HEADER, VERSION_HEADER, digest
from mle_ideator.plain_text import joined_lines, printable
from mle_ideator.types import UNKNOWN_USAGE, Proposal, Usage

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 30.0
_HEEDED_S = 1.0
"""A server that asks for a shorter wait again and again is not asked ever faster."""
_LARGEST = 4 * 2**20
_LONGEST_MESSAGE = 300
_FORM = (
    f"three parts, none empty or over {MAX_PART_CHARS} characters, the analysis starting with "
    "Refine or Revert to #k"
)


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
        asked = (self._retry_after_s or 0.0) * random.uniform(1.0, 1.25)
        if asked >= _HEEDED_S:
            return asked
        wait: float = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2.0 ** min(tries - 1, 10))
        return max(asked, wait * random.uniform(0.5, 1.0))


class Busy(TryFailed):
    """The server works, and has no time yet."""


class Reply(NamedTuple):
    """A whole answer."""

    status: int
    headers: httpx2.Headers
    content: bytes

    @property
    def says(self) -> str:
        """Its own words on what went wrong, or its status."""
        return cut(str(self._error.get("message") or f"HTTP {self.status}"))

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


def read_proposal(content: bytes, numbers: Collection[int]) -> Proposal:
    """What a server answered, believed only as far as it can be true.

    Where these solutions exist, an idea that is not well-formed or goes back to another one counts
    as malformed. Raises `msgspec.DecodeError`, also for a negative usage.
    """
    told = msgspec.json.decode(content, type=Proposal)
    if told.idea is None:
        return msgspec.structs.replace(told, reason=cut(told.reason))
    if not well_formed(told.idea):
        wrong = f"its idea is not in form: {_FORM}"
    else:
        wrong = wrong_revert(told.idea, numbers)
    if wrong:
        return Proposal(None, wrong, told.usage, malformed=True)
    return Proposal(told.idea, usage=told.usage)


def cut(text: str) -> str:
    """In one line, and not for ever."""
    return printable(joined_lines(text)[:_LONGEST_MESSAGE])


def line(error: Exception) -> str:
    return joined_lines(error) or type(error).__name__
