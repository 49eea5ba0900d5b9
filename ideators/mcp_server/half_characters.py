"""JSON with halves of characters in it, as agents write it that cut a text in the middle of one.

The protocol's readers drop such a message whole, and the agent waits for an answer for ever.
"""

from __future__ import annotations

import re

_ESCAPE = re.compile(
    r"\\(?:(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"  # both halves
    r"|(u[dD][89a-fA-F][0-9a-fA-F]{2})"  # one alone
    r"|.)",
    re.DOTALL,
)


def mended(json: str) -> str:
    """The same JSON with the replacement character where half a character stood."""
    return _ESCAPE.sub(lambda escape: r"\ufffd" if escape[2] else escape[0], json)
