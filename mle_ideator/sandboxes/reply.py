"""What a kernel may answer. Agent code can send anything in the kernel's name."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)


class Reply(msgspec.Struct, frozen=True):
    """How a cell ended; what it wrote is not in here."""

    status: Literal["ok", "error"]
    exit_code: Annotated[int, msgspec.Meta(ge=-255, le=255)] = 0
    """Of bash; negative: the signal that ended it."""


class Answered(msgspec.Struct, frozen=True):
    """Any answer will do."""


class _Parent(msgspec.Struct, frozen=True):
    msg_id: str


class _Message(msgspec.Struct, frozen=True):
    parent_header: _Parent
    content: dict[str, Any]


def decoded(message: Any, request: str, expected: type[S]) -> S:
    """The content of the reply to the request with this id. Raises `msgspec.ValidationError`."""
    reply = msgspec.convert(message, _Message)
    if reply.parent_header.msg_id != request:
        raise msgspec.ValidationError("a reply that nobody has asked for")
    return msgspec.convert(reply.content, expected)
