"""What the many words mean with which servers say why an answer ended."""

from __future__ import annotations

from typing import Literal

Finish = Literal["stop", "length", "tool_calls", "refused"]

_WHOLE = {
    "stop",
    "end_turn",
    "eos",
    "eos_token",
    "stop_sequence",
    "stop_token",
    "complete",
    "completed",
    "tool_calls",
    "tool_call",
    "tool_use",
    "function_call",
}
_REFUSED = {
    "content_filter",
    "refusal",
    "safety",
    "recitation",
    "blocklist",
    "prohibited_content",
    "spii",
    "sensitive",
    "error_toxic",
}
_BROKEN = {"error", "abort", "cancelled", "network_error", "insufficient_system_resource"}


def gave_up(reason: str | None) -> bool:
    """Could the server not go on?"""
    return str(reason).lower() in _BROKEN


def finish_of(reason: str, *, calls: bool, output_tokens: int | None, most: int) -> Finish:
    """How an answer ended. Half a script must never run: so one that is as long as its limit was
    cut, whatever the server calls it, and so was one that ended in a way which is not known."""
    word = reason.lower()
    if word in _REFUSED:
        return "refused"
    if word not in _WHOLE or (output_tokens or 0) >= most:
        return "length"
    return "tool_calls" if calls else "stop"
