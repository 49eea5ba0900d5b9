"""Reads an idea's free text: which operations it asks for, and which it wants gone.

Words only: no knowledge of which operation would help. Sentence by sentence, an operation that
stands after a negation (`without`, `instead of`, `remove` …) is taken out, any other is taken in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from mle_ideator.operations import mentions
from mle_ideator.types import Idea

_CLAUSE = re.compile(
    r"[.;:!?\n](?=\s|$)|\b(?:but|and then|then)\b|,\s*(?=(?:use|switch|try|add)\b)", re.IGNORECASE
)
_AGAINST = re.compile(
    r"\b(?:do(?:es)? not|don't|never|without|instead of|rather than|in place of|remov\w+|drop\w*|"
    r"leav\w+ out|tak\w+ out|get rid of|turn off|disable|stop|no longer|not(?! only)|avoid\w*|"
    r"replac\w+|switch\w* from|move away from|away from|abandon\w*|discard\w*|undo|no more)\b"
    r"(?: (?:use|using|add|adding|try|trying|apply|applying|the use of))?",
    re.IGNORECASE,
)
_FOR = re.compile(
    r"\b(?:with|by|to|use|using|adopt|add|in favou?r of|prefer|keep|try)\b", re.IGNORECASE
)
_NUMBER_WORDS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
                 "nine": 9, "ten": 10}  # fmt: skip
_COUNT = rf"(\d+|{'|'.join(_NUMBER_WORDS)})"
_SEEDS = re.compile(rf"\b{_COUNT}[- ](?:\w+ )?seeds?\b|\bseeds?\b\D{{0,8}}\b{_COUNT}\b", re.I)
_FOLDS = re.compile(rf"\b{_COUNT}[- ]?folds?\b|\bfolds?\b\D{{0,8}}\b{_COUNT}\b", re.I)
MOST_SEEDS, MOST_FOLDS = 6, 10
_QUOTED = re.compile(r"`[^`]*`")
MOST_TEXT = 5000
"""Characters of an idea that are read; no idea needs more."""


@dataclass(frozen=True)
class Understanding:
    """What a text asks for."""

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    seeds: int | None = None
    folds: int | None = None

    @property
    def is_empty(self) -> bool:
        return not (self.add or self.remove or self.folds)


def understand(text: str, columns: Iterable[str] = ()) -> Understanding:
    """The operations that a text names, told apart by whether it wants them.

    Names of `columns` in backticks are not read: they are data, whatever words they contain.
    """
    text = text[:MOST_TEXT]
    for name in columns:
        text = text.replace(f"`{name}`", "``")
    add: list[str] = []
    remove: list[str] = []
    for clause in _CLAUSE.split(text):
        for name, wanted in _named(clause or ""):
            (add if wanted else remove).append(name)
    return Understanding(
        tuple(dict.fromkeys(add)),
        tuple(dict.fromkeys(name for name in remove if name not in add)),
        _count(_SEEDS, text, MOST_SEEDS),
        _count(_FOLDS, text, MOST_FOLDS),
    )


def gist(idea: Idea) -> str:
    """All that decides what is made of an idea, whatever columns there are.

    What stands in backticks is not read if it is the name of a column. Where that would make a
    difference, every word counts.
    """
    read, unread = understand(idea.action), understand(_QUOTED.sub("``", idea.action))
    return f"{idea.reverts_to} {read if read == unread else idea.action}"


def _named(clause: str) -> list[tuple[str, bool]]:
    """The operations of one clause in the order of their mention, and whether they are wanted."""
    return [(one.operation.name, _wanted(clause[: one.start])) for one in mentions(clause)]


def _wanted(before: str) -> bool:
    """Does no word against what follows stand before it, or a word for it after that?"""
    against = max((match.end() for match in _AGAINST.finditer(before)), default=None)
    return against is None or _FOR.search(before, against) is not None


def _count(pattern: re.Pattern[str], text: str, most: int) -> int | None:
    found = pattern.search(text)
    if not found:
        return None
    word = next(group for group in found.groups() if group).lower()
    number = _NUMBER_WORDS.get(word) or int(word)
    return min(number, most) if number >= 2 else None
