"""Code in a reply: its fences, and the strings and heredocs in it that shield what they hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

LANGUAGES = {
    **dict.fromkeys(("python", "python3", "py", "ipython"), "python"),
    **dict.fromkeys(("bash", "sh", "shell"), "bash"),
}
"""The languages of fenced blocks that can be run, by the names that models give them."""

INVISIBLE = "\ufeff\u200b\u200c\u200d\u2060"
"""Byte order marks and blanks without width, which stand before tags and JSON now and then."""

# An info string after backticks has none itself: ```python print(1)``` is prose.
FENCE = r"^[ \t]*(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})(?P<info>[^\n]*)$"
_FENCE = re.compile(FENCE, re.MULTILINE)

# Only triple-quoted strings reach over lines; the other strings and comments hide their quotes.
_PYTHON = re.compile(
    r"""\#[^\n]*+"""
    r"""|(?P<long>\"{3}|'{3})(?:\\.|[^\\])*?(?P<close>(?P=long)|\\?\Z)"""
    r"""|"(?:\\.|[^"\\\n])*+"?|'(?:\\.|[^'\\\n])*+'?""",
    re.DOTALL | re.VERBOSE,
)
_HEREDOC = (
    r"(?<!<)(?P<long><<-?[ \t]{0,9}['\"\\]?(?P<end>[A-Za-z_]\w{0,99}+)['\"]?[^\n)]{0,200}+\n)"
    r"(?:[^\n]*+\n)*?(?P<close>\t*(?P=end)[ \t]*(?:\n|\Z)|[^\n]*\Z)"
)
_BASH = re.compile(_HEREDOC)
_BASH_TEXTS = re.compile(
    rf"""{_HEREDOC}|(?<![^\s;&|()<>])#[^\n]*+|\\.|\$'(?:\\.|[^'\\])*+'?|'[^']*+'?|"(?:\\.|[^"\\])*+"?""",
    re.DOTALL,
)


class Span(NamedTuple):
    """A stretch of a text."""

    start: int
    end: int
    closed: bool = True


def shields(text: str, begin: int, language: str | None) -> Iterator[Span]:
    """Where, from `begin` on, code is a string over several lines or a heredoc.

    One that is never closed reaches to the end.
    """
    pattern = {"python": _PYTHON, "bash": _BASH}.get(language or "")
    for found in pattern.finditer(text, begin) if pattern else ():
        if found["long"]:
            yield _span(found)


def texts(text: str, begin: int, language: str) -> Iterator[Span]:
    """Where, from `begin` on, code is a comment, a string of any kind or a heredoc."""
    pattern = _PYTHON if language == "python" else _BASH_TEXTS
    return map(_span, pattern.finditer(text, begin))


def _span(found: re.Match[str]) -> Span:
    if found["long"]:
        closed = found["close"].strip() in (found["long"], found.groupdict().get("end"))
    else:
        mark = found[0].lstrip("$")[0]
        closed = mark not in "\"'" or (found[0].endswith(mark) and len(found[0]) > 1)
    return Span(found.start(), found.end(), closed)


def first_outside(
    places: Iterator[re.Match[str]], shielded: Iterator[Span]
) -> re.Match[str] | None:
    """The first place that no span holds. Both come in order."""
    span = next(shielded, None)
    for place in places:
        while span and span.end <= place.start():
            span = next(shielded, None)
        if span is None or place.start() <= span.start:
            return place
    return None


def language_of(info: str) -> str:
    """The language that a fence names, as it is known here; empty if it names none."""
    words = info.strip().lstrip("{.").rstrip("}").replace(",", " ").split()
    name = words[0].lower() if words else ""
    return LANGUAGES.get(name, name)


def end_of_fence(text: str, opener: re.Match[str]) -> re.Match[str] | None:
    """The line that closes a fenced block: as many marks or more, outside the code's strings.

    If every such line stands in a string, the string was never closed, and the first one counts.
    """
    fence, begin = opener["fence"], opener.end()
    closer = re.compile(rf"^[ \t]*{fence[0]}{{{len(fence)},}}[ \t]*$", re.MULTILINE)
    spans = shields(text, begin, language_of(opener["info"]))
    outside = first_outside(closer.finditer(text, begin), spans)
    return outside or closer.search(text, begin)


def unfenced(text: str, language: str) -> tuple[str, str]:
    """Code that may stand in a fence, without it; and what is wrong, if anything is."""
    code = tidy(text)
    opener = _FENCE.match(code)
    if opener is None:
        return code, ""
    closer = end_of_fence(code, opener)
    if closer is None:
        return "", f"the fence {opener[0].strip()} inside the tag is not closed"
    if closer.end() < len(code.rstrip()):
        return "", "besides the fenced block there is more text inside the tag"
    fenced_in = language_of(opener["info"])
    if fenced_in in LANGUAGES.values() and fenced_in != language:
        return "", f"the tag says {language}, the fence inside it says {fenced_in}"
    return tidy(code[opener.end() : closer.start()]), ""


def tidy(code: str) -> str:
    """Without blank lines around, and without an indent that the first line shares with all."""
    lines = code.replace("\r\n", "\n").split("\n")
    filled = [number for number, line in enumerate(lines) if line.strip()]
    if not filled:
        return ""
    lines = lines[filled[0] : filled[-1] + 1]
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip(" \t"))]
    if indent and all(line.startswith(indent) or not line.strip() for line in lines):
        lines = [line.removeprefix(indent) for line in lines]
    return "\n".join(lines)


def fence_around(text: str) -> str:
    """A fence that is longer than any in the text, so that none of it can end the block."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    return "`" * (longest + 1)


def fenced(text: str, language: str = "") -> str:
    """In a fence that nothing in the text can close."""
    fence = fence_around(text)
    return f"{fence}{language}\n{text}\n{fence}"
