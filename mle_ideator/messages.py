"""What goes to a chat model and what comes back, the same for every provider."""

from __future__ import annotations

from typing import Any, Literal

from mle_ideator.types import Usage, Value

Role = Literal["system", "user", "assistant", "tool"]


class ToolCall(Value, frozen=True):
    """A model's wish to call a tool."""

    id: str
    name: str
    arguments: str
    """As the model wrote them: JSON, or what it takes for JSON."""


class Tool(Value, frozen=True):
    """A tool that a model may call."""

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON schema of the arguments."""


class Message(Value, frozen=True):
    """One message. Neighbours of the same role are allowed; clients join them where they must."""

    role: Role
    text: str
    calls: tuple[ToolCall, ...] = ()
    """What an assistant called."""
    call_id: str = ""
    """Which call a tool message answers."""
    stable: bool = False
    """Will everything up to the end of this message be sent again? Then a cache may end here."""


class CallOptions(Value, frozen=True, kw_only=True):
    """How one call is to be answered. What a model refuses of it is left out, see `Completion`."""

    max_tokens: int = 8192
    """Most output tokens, reasoning included."""
    temperature: float | None = None
    """`None` leaves it to the model."""
    effort: Literal["low", "medium", "high"] | None = None
    """How much a model may reason; `None` leaves it to the model."""
    stop: tuple[str, ...] = ()
    """The answer ends before the first of these."""
    seed: int | None = None
    tools: tuple[Tool, ...] = ()
    json_schema: dict[str, Any] | None = None
    """The answer is to be JSON of this schema."""
    max_cost_usd: float | None = None
    """The call is not made if at worst it would cost more."""


class Completion(Value, frozen=True, kw_only=True):
    """A model's answer."""

    text: str
    reasoning: str = ""
    """What the provider shows of the model's reasoning; never sent back."""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage(calls=1)
    finish_reason: Literal["stop", "length", "tool_calls", "refused"]
    """`length`: cut at `max_tokens` or at the end of the context."""
    dropped: tuple[str, ...] = ()
    """Names of the options that this model refuses, and that were left out."""
