"""Action tags, fenced blocks and thoughts in a text, in order.

A tag counts where a line begins and no block is open: in code, in a fence, in backticks, within a
sentence, or where a model only thinks, it is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mle_ideator.actions.code import (
    FENCE,
    INVISIBLE,
    Span,
    end_of_fence,
    first_outside,
    language_of,
    shields,
    texts,
)

STOPS = ("\n</execute_python>", "\n</execute_bash>", "</seek_help>", "</finish>")
"""Where a reply in tags may be ended: its action is complete."""

LANGUAGE = {"execute_python": "python", "execute_bash": "bash"}
"""Of the tags that hold code. Their closing tag stands outside of the code's strings."""

_ANY = r"(?P<name>execute[_-]?(?:python|bash)|seek[_-]?help|finish)"
_INDENT = rf"^[ {INVISIBLE}]{{0,3}}"
_OPENER = rf"{_INDENT}<[ \t]*{_ANY}(?P<rest>(?:[ \t/][^<>\n]*)?)>"
_THOUGHT = (
    r"<(?P<thought>think(?:ing)?|thoughts?|reasoning|reflection|plan(?:ning)?|analysis)>|<!--"
)
_NEXT_THOUGHT = re.compile(rf"\s*(?:{_THOUGHT})", re.IGNORECASE)
_UNTIL_THE_END = ("think", "thinking", "reasoning")
"""If they are not closed, the reply ended within them. The others are mere words then."""
_BEGIN = re.compile(f"{_OPENER}|{_INDENT}(?:{_THOUGHT})|{FENCE}", re.MULTILINE | re.IGNORECASE)
_FENCE_FIRST = re.compile(rf"\s*+{FENCE}", re.MULTILINE)
TAG_WITHIN_LINE = re.compile(rf"<[ \t]*{_ANY}[ \t]*>", re.IGNORECASE)
"""A tag anywhere, to tell where one was written that does not count."""
_LINE_OPENER = re.compile(_OPENER, re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True)
class Block:
    """A tag, a fenced block or a thought, from its line's start to its closing mark's end."""

    name: str
    """The action of a tag, the language of a fence; `thought`."""
    opener: str
    inner: str
    start: int
    end: int
    is_tag: bool
    closed: bool
    is_thought: bool = False
    open_tag_alone: bool = True
    """Does nothing else stand on the opener's line?"""

    @property
    def holds_a_tag(self) -> bool:
        """Does an opening tag begin a line inside?"""
        return _LINE_OPENER.search(self.inner) is not None


def blocks(text: str) -> Iterator[Block]:
    """Every block on the top level. An open one reaches to the end of the text."""
    position, endless = 0, set[str]()
    while found := _BEGIN.search(text, position):
        if found["name"]:
            block = _tag(text, found)
        elif found["fence"]:
            block = _fenced(text, found)
        elif (thought := _thought(text, found, endless)) is None:
            position = found.end()
            continue
        else:
            block = thought
        yield block
        position = block.end


def _thought(text: str, opener: re.Match[str], endless: set[str]) -> Block | None:
    """Thoughts that follow each other; `None` if they begin with a word that is not closed.

    Such words are added to `endless`, so that they are not looked for again.
    """
    inner, end = [], opener.start()
    found: re.Match[str] | None = opener
    while found and (name := (found["thought"] or "").lower()) not in endless:
        closer = re.compile(f"</{name}>" if name else "-->", re.IGNORECASE)
        closed = closer.search(text, found.end())
        if closed is None and name not in _UNTIL_THE_END:
            endless.add(name)
            break
        inner.append(text[found.end() : closed.start() if closed else len(text)].strip())
        end = closed.end() if closed else len(text)
        found = _NEXT_THOUGHT.match(text, end)
    if not inner:
        return None
    return Block(
        name="thought",
        opener=opener[0].strip(),
        inner="\n\n".join(inner),
        start=opener.start(),
        end=end,
        is_tag=False,
        closed=True,
        is_thought=True,
    )


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
    closing = closer_of(name)
    if name not in LANGUAGE:
        return _span(re.compile(closing, re.IGNORECASE).search(text, begin))
    at_line_start = re.compile(rf"{_INDENT}{closing}", re.IGNORECASE | re.MULTILINE)
    anywhere = re.compile(closing, re.IGNORECASE)
    language, fence = LANGUAGE[name], _fence_first(text, begin)
    over_lines = iter(fence) if fence else shields(text, begin, language)
    of_any_kind = iter(fence) if fence else texts(text, begin, language)
    clear = (
        first_outside(at_line_start.finditer(text, begin), over_lines),
        first_outside(anywhere.finditer(text, begin), of_any_kind),
    )
    if closers := list(filter(None, clear)):
        return _span(min(closers, key=lambda found: found.end()))
    # A string that is never closed shields nothing; and the very end of a reply is plain, too.
    end_of_line = text.find("\n", begin)
    plain = anywhere.search(text, begin, len(text) if end_of_line < 0 else end_of_line)
    at_the_end = re.compile(rf"{closing}\s*\Z", re.IGNORECASE)
    return _span(plain or at_line_start.search(text, begin) or at_the_end.search(text, begin))


def closer_of(name: str) -> str:
    """What closes a tag, as a pattern."""
    return rf"<[ \t]*/[ \t]*{name.replace('_', '[_-]?')}[ \t]*>"


def _fence_first(text: str, begin: int) -> list[Span]:
    """The fence that the tag begins with, if it does: it shields more than the code in it."""
    fence = _FENCE_FIRST.match(text, begin)
    closer = end_of_fence(text, fence) if fence else None
    return [Span(fence.start(), closer.end())] if fence and closer else []


def _span(found: re.Match[str] | None) -> Span | None:
    return Span(found.start(), found.end()) if found else None
