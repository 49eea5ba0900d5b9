"""How messages name examples: quoted, cut, and few. So file content can not flood or forge text."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

EXAMPLES = 3
LONGEST = 40


def quoted(text: str) -> str:
    """The text in quotes on one line, cut to `LONGEST` characters."""
    cut = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return repr(cut)


def some(items: Iterable[str], total: int, most: int = EXAMPLES) -> str:
    """The first few items quoted, and that there are more."""
    first = ", ".join(quoted(item) for item in islice(items, most))
    return first + (", …" if total > most else "")


def count(number: int, thing: str) -> str:
    """`1 row`, `1,200 rows`."""
    return f"{number:,} {thing}" + ("" if number == 1 else "s")
