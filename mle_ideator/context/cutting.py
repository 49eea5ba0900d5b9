"""Text cut to its head and tail, for what fits in no other way. What was left out is counted."""

from __future__ import annotations

import json
from collections.abc import Sequence

from msgspec.structs import replace

from mle_ideator.context.tokens import MOST_CHARS, size, tokens_of
from mle_ideator.messages import Message, ToolCall

_LEAST = 24
"""Tokens below which a text is not cut further: the remark alone takes most of them."""


def cut(text: str, most: int) -> str:
    """The text in at most so many tokens: its head, a remark, its tail.

    Nothing remains where not even the remark has room. Of a text that is far too long only as much
    is read as could remain.
    """
    most = max(0, most)
    shorter = read = text if len(text) <= most * MOST_CHARS else _ends(text, most * MOST_CHARS)
    kept, tokens = len(read), tokens_of(read)
    total = tokens
    while tokens > most and kept:
        kept = min(kept * 3 // 4, len(read) * most // total)
        shorter = _ends(text, kept)
        tokens = tokens_of(shorter)
    return shorter if tokens <= most else ""


def _ends(text: str, kept: int) -> str:
    head, tail = text[: kept // 2], text[len(text) - (kept + 1) // 2 :]
    return f"{head}\n[… {len(text) - kept} characters left out …]\n{tail}"


def fitted(messages: Sequence[Message], most: int) -> tuple[Message, ...] | None:
    """The messages in at most so many tokens: the longest texts are cut, all to one length.

    `None` if there are so many messages that nothing would be left of them.
    """
    huge = far_over(messages, most)
    if not huge and size(messages) <= most:
        return tuple(messages)
    longest = most if huge else min(most, max(_parts(messages)))
    while longest > _LEAST:
        longest = max(_LEAST, longest * 7 // 8)
        shorter = tuple(_shortened(message, longest) for message in messages)
        if size(shorter) <= most:
            return shorter
    return None


def far_over(messages: Sequence[Message], most: int) -> bool:
    """Is a text so long that it needs no counting to know that it has more tokens?"""
    return any(len(text) > most * MOST_CHARS for message in messages for text in _texts(message))


def _parts(messages: Sequence[Message]) -> list[int]:
    return [tokens_of(text) for message in messages for text in _texts(message)]


def _texts(message: Message) -> tuple[str, ...]:
    return message.text, *(call.arguments for call in message.calls)


def _shortened(message: Message, longest: int) -> Message:
    calls = tuple(_shortened_call(call, longest) for call in message.calls)
    return replace(message, text=cut(message.text, longest), calls=calls)


def _shortened_call(call: ToolCall, longest: int) -> ToolCall:
    """Arguments stay JSON: their texts are cut, or all of them if they are no JSON."""
    short = len(call.arguments) <= longest * MOST_CHARS
    if short and tokens_of(call.arguments) <= longest:
        return call
    try:
        values = json.loads(call.arguments)
    except ValueError:
        values = None
    if not isinstance(values, dict):
        values = {"unreadable": call.arguments}
    share = longest // 2 // max(1, len(values))  # quoting takes the other half, at most
    shorter = {k: cut(v, share) if isinstance(v, str) else v for k, v in values.items()}
    return replace(call, arguments=json.dumps(shorter, ensure_ascii=False))
