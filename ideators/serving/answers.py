"""What clients are told: answers as JSON, and what went wrong in one line and a code.

Errors have the form that OpenAI's clients read: `{"error": {"message", "type", "code"}}`.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
from starlette.responses import Response

from mle_ideator.errors import AgentError, ContextOverflow, MleIdeatorError, OutOfBudget
from mle_ideator.plain_text import joined_lines, printable


class Refused(Exception):
    """A request is not answered as wished. Raised while it is handled, told to its client."""

    def __init__(
        self, status: int, code: str, message: str, *, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = printable(message)
        self.retry_after_s = retry_after_s


class Gone(Exception):
    """The client went away: there is nobody to be told."""

    code = "gone"


def as_json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(value), status, headers, media_type="application/json")


def told(refused: Refused, *, close: bool = False) -> Response:
    """A refusal as a response; `close` ends the connection after it."""
    headers = {"connection": "close"} if close else {}
    if refused.retry_after_s is not None:
        headers["retry-after"] = str(max(1, math.ceil(refused.retry_after_s)))
    if refused.status == 401:
        headers["www-authenticate"] = "Bearer"
    kind = "invalid_request_error" if refused.status < 500 else "server_error"
    error = {"message": refused.message, "type": kind, "code": refused.code}
    return as_json({"error": error}, refused.status, headers)


def refusal(error: MleIdeatorError) -> Refused:
    """What an ideator or a model raised on purpose, as its client is told."""
    line = joined_lines(error)
    match error:
        case ContextOverflow():
            return Refused(400, "context_length_exceeded", line)
        case OutOfBudget():
            return Refused(402, "out_of_budget", line)
        case AgentError():
            return Refused(502, "agent_failed", line)
    return Refused(502, "agent_failed", f"{type(error).__name__}: {line}")


def invalid(error: Exception, code: str = "invalid") -> Refused:
    """A body that is not what it should be, with the place where it is not."""
    return Refused(422, code, f"the request can not be read: {error}.")
