"""An idea in the fewest words that say it."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from mle_ideator.idea_form import well_formed
from mle_ideator.types import Idea

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
# Nothing but names in backticks between the colon and the full stop: what else stands there stays.
_COLUMNS = re.compile(r"\s*Columns: `[^`]*`(?:, `[^`]*`)*(?: and \d+ more)?\.")
_REST = re.compile(r"\s*Keep everything else as it is\.$")


def shortened(idea: Idea, gist: Callable[[Idea], str] | None = None) -> Idea:
    """The first sentences of analysis and rationale, the action without its columns.

    Still well-formed if it was. With a `gist`, which says what an implementer goes by, nothing is
    left out that changes it.
    """
    short = Idea(
        _first_sentence(idea.analysis),
        _REST.sub("", _COLUMNS.sub("", idea.action)).strip() or idea.action,
        _first_sentence(idea.rationale),
    )
    if gist and gist(short) != gist(idea):
        short = msgspec.structs.replace(short, action=idea.action)
    if well_formed(idea) and not well_formed(short):
        return idea
    return idea if gist and gist(short) != gist(idea) else short


def _first_sentence(text: str) -> str:
    return _SENTENCE.split(text.strip(), maxsplit=1)[0]
