"""What a driver and a worker process say to each other: values with their length before them."""

from __future__ import annotations

import socket
from typing import Literal, TypeVar

import msgspec

from mle_ideator.types import Value

LENGTH = 8
"""Bytes."""

T = TypeVar("T", bound=Value)


class Hello(Value, frozen=True):
    """The first thing that a worker is told."""

    import_path: tuple[str, ...] = ()
    """Where the driver imports from; looked through before what else the worker has."""


class Ready(Value, frozen=True):
    """Its answer."""

    worker: int
    """Process id."""
    guard: int


class Order(Value, frozen=True, kw_only=True):
    """One work, as its worker needs it."""

    function: str
    argument: bytes
    inputs: tuple[str, ...]
    limit_s: float
    identity: str | None = None
    cache: str | None = None
    """Folder."""


class Reply(Value, frozen=True, kw_only=True):
    """What came of it."""

    status: Literal["ok", "error", "infra_error"]
    value: bytes = b""
    detail: str = ""
    seconds: float = 0.0
    cached: bool = False
    final: bool = True
    """May be kept."""
    spent: bool = False
    """The worker is not fit for other work: something of this one goes on in it."""


def packed(value: Value) -> bytes:
    content = msgspec.msgpack.encode(value)
    return len(content).to_bytes(LENGTH, "big") + content


def unpacked(content: bytes, kind: type[T]) -> T:
    return msgspec.msgpack.decode(content, type=kind)


def receive(connection: socket.socket, kind: type[T]) -> T | None:
    """The next value, for a worker that has nothing else to do; `None` at the end."""
    length = int.from_bytes(_exactly(connection, LENGTH), "big")
    content = _exactly(connection, length)
    return unpacked(content, kind) if content else None


def _exactly(connection: socket.socket, number: int) -> bytes:
    """So many bytes; none at the end."""
    content = bytearray(number)
    view = memoryview(content)
    while view:
        got = connection.recv_into(view)
        if not got:
            return b""
        view = view[got:]
    return bytes(content)
