"""What a model wrote, read as a server's client reads it: where the answer ends, and its text."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from typing import Any

from mle_ideator.idea_form import STOP
from mle_ideator.rl.training.values import Answer


class Reader:
    """Of a model's tokens, as `prompted` reads what a served model writes."""

    def __init__(self, tokenizer: Any, ends: Collection[int]) -> None:
        """`ends` are the tokens with which the model ends an answer."""
        self._tokenizer = tokenizer
        self._ends = ends

    def length(self, tokens: Sequence[int]) -> int:
        """How many tokens are the answer: those up to the stop text, and an end right after it.

        A server stops there; what a model goes on to write is no part of its answer.
        """
        if not self.stops(tokens):
            return len(tokens)
        said = bisect_left(range(len(tokens)), True, key=lambda size: self.stops(tokens[:size]))
        return said + (said < len(tokens) and tokens[said] in self._ends)

    def answer(self, tokens: Sequence[int]) -> Answer:
        text, stop, _ = self._text(tokens).partition(STOP)
        ended = bool(stop) or (bool(tokens) and tokens[-1] in self._ends)
        return Answer(text, len(tokens), cut=not ended)

    def stops(self, tokens: Sequence[int]) -> bool:
        """Is the stop text in them?"""
        return STOP in self._text(tokens)

    def _text(self, tokens: Sequence[int]) -> str:
        return str(self._tokenizer.decode(tokens, skip_special_tokens=True))


def stop_token(tokenizer: Any) -> int | None:
    """The token that is the stop text, if it is one: then generation itself can end there."""
    tokens = tokenizer.encode(STOP, add_special_tokens=False)
    return tokens[0] if len(tokens) == 1 else None
