"""How many tokens a text is, about: no tokenizer at hand, and every model has another one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from mle_ideator.messages import Message

_PIECE = re.compile(
    r" ?[A-Z]?[a-z]{1,6}| ?[A-Z]{1,2}|\d|\n+ {0,16}| {1,16}(?= )|\t{1,4}|[-=_*#.]{4,16}|[^A-Za-z\d]"
)
_RANDOM = re.compile(r"[A-Za-z\d+/]{32,}")
"""Encoded data: no tokenizer knows such words."""
MOST_CHARS = 17
"""Characters of a token at most, but for a run of line ends."""
_REMEMBERED = 50_000
"""Characters of a text whose tokens are counted anew each time: such texts seldom come again."""
_AROUND = 6
"""What a chat template puts around a message or a call."""


def tokens_of(text: str) -> int:
    """About how many tokens a text is, seldom fewer than a tokenizer of today makes of it.

    Digits count singly, as some models read them so.
    """
    return _known(text) if len(text) <= _REMEMBERED else _counted(text)


@lru_cache(maxsize=4096)
def _known(text: str) -> int:
    return _counted(text)


def _counted(text: str) -> int:
    beyond_ascii = len(text.encode("utf-8", "surrogatepass")) - len(text)
    unknown = sum(map(len, _RANDOM.findall(text)))
    return len(_PIECE.findall(text)) + (beyond_ascii + 1) // 2 + unknown // 3


def size(messages: Iterable[Message]) -> int:
    """Tokens of messages, calls and what a chat template adds included."""
    return sum(_size(message) for message in messages)


def _size(message: Message) -> int:
    calls = sum(
        tokens_of(call.name) + tokens_of(call.arguments) + _AROUND for call in message.calls
    )
    return tokens_of(message.text) + calls + _AROUND
