"""Action tags and fenced blocks in a text, in order.

A tag counts where a line begins and no block is open: in code, in a fence, in backticks or within a
sentence it is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mle_ideator.actions.code import (
    FENCE,
    Span,
    end_of_fence,
    first_outside,
    language_of,
    shields,
)

STOPS = ("\n</execute_python>", "\n</execute_bash>", "</seek_help>", "</finish>")
"""Where a reply in tags may be ended: its action is complete."""

LANGUAGE = {"execute_python": "python", "execute_bash": "bash"}
"""Of the tags that hold code. Their closing tag begins a line, or ends the opener's line."""

_ANY = r"(?P<name>execute[_-]?(?:python|bash)|seek[_-]?help|finish)"
_OPENER = rf"^[ ]{{0,3}}<[ \t]*{_ANY}(?P<rest>(?:[ \t/][^<>\n]*)?)>"
_BEGIN = re.compile(f"{_OPENER}|{FENCE}", re.MULTILINE | re.IGNORECASE)
_FENCE_FIRST = re.compile(rf"\s*{FENCE}", re.MULTILINE)
TAG_WITHIN_LINE = re.compile(rf"<[ \t]*{_ANY}[ \t]*>", re.IGNORECASE)
"""A tag anywhere, to tell where one was written that does not count."""
_LINE_OPENER = re.compile(_OPENER, re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True)
class Block:
    """A tag or a fenced block, from the start of its line to the end of its closing mark."""

    name: str
    """The action of a tag, the language of a fence."""
    opener: str
    inner: str
    start: int
    end: int
    is_tag: bool
    closed: bool
    open_tag_alone: bool = True
    """Does nothing else stand on the opener's line?"""

    @property
    def holds_a_tag(self) -> bool:
        """Does an opening tag begin a line inside?"""
        return _LINE_OPENER.search(self.inner) is not None


def blocks(text: str) -> Iterator[Block]:
    """Every block on the top level. An open one reaches to the end of the text."""
    position = 0
    while found := _BEGIN.search(text, position):
        block = _tag(text, found) if found["name"] else _fenced(text, found)
        yield block
        position = block.end


def _fenced(text: str, opener: re.Match[str]) -> Block:
    closer = end_of_fence(text, opener)
    return Block(
        name=language_of(opener["info"]),
        opener=opener[0].strip(),
        inner=text[opener.end() : closer.start() if closer else len(text)],
        start=opener.start(),
        end=closer.end() if closer else len(text),
        is_tag=False,
        closed=closer is not None,
    )


def _tag(text: str, opener: re.Match[str]) -> Block:
    name = _canonical(opener["name"])
    empty = opener["rest"].endswith("/")
    end = Span(opener.end(), opener.end()) if empty else _end_of_tag(text, opener.end(), name)
    line = text[opener.end() :].partition("\n")[0]
    return Block(
        name=name,
        opener=f"<{name}>",
        inner=text[opener.end() : end.start if end else len(text)],
        start=opener.start(),
        end=end.end if end else len(text),
        is_tag=True,
        closed=end is not None,
        open_tag_alone=not line.strip(),
    )


def _canonical(name: str) -> str:
    word = name.lower().replace("-", "").replace("_", "")
    names = (*LANGUAGE, "seek_help", "finish")
    return next(known for known in names if known.replace("_", "") == word)


def _end_of_tag(text: str, begin: int, name: str) -> Span | None:
    """Where the closing tag stands, `None` if it is missing."""
    closing = rf"<[ \t]*/[ \t]*{name.replace('_', '[_-]?')}[ \t]*>"
    if name not in LANGUAGE:
        return _span(re.compile(closing, re.IGNORECASE).search(text, begin))
    end_of_line = text.find("\n", begin)
    end_of_line = len(text) if end_of_line < 0 else end_of_line
    if found := re.compile(closing, re.IGNORECASE).search(text, begin, end_of_line):
        return _span(found)
    at_line_start = re.compile(rf"^[ ]{{0,3}}{closing}", re.IGNORECASE | re.MULTILINE)
    shielded = _shielded(text, begin, LANGUAGE[name])
    if found := first_outside(at_line_start.finditer(text, begin), shielded):
        return _span(found)
    # A string that is never closed shields nothing; and the very end of a reply is plain, too.
    at_the_end = re.compile(rf"{closing}\s*\Z", re.IGNORECASE)
    return _span(at_line_start.search(text, begin) or at_the_end.search(text, begin))


def _shielded(text: str, begin: int, language: str) -> Iterator[Span]:
    """The fence that the tag begins with, if it does, else the strings of its code."""
    fence = _FENCE_FIRST.match(text, begin)
    closer = end_of_fence(text, fence) if fence else None
    if fence and closer:
        return iter([Span(fence.start(), closer.end())])
    return shields(text, begin, language)


def _span(found: re.Match[str] | None) -> Span | None:
    return Span(found.start(), found.end()) if found else None
