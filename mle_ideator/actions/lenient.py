"""JSON as models write it: read whole or not at all.

Python's words and quotes, keys without quotes, trailing commas and line ends in strings do not
change what is meant. Nothing is completed, and nothing is left out: where a string could end in two
places, or something is missing, it is not read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_DEEPEST = 50
_GAP = re.compile(r"\s*+")
_BETWEEN = re.compile(r"[\s,;\]}]*+")
"""After a value: brackets too many mean nothing."""
_STRING = re.compile(
    r"""(?P<quotes>"{3}|'{3})(?P<long>(?:\\.|(?!(?P=quotes)).)*+)(?P=quotes)"""
    r"""|"(?P<double>(?:\\.|[^"\\])*+)"|'(?P<single>(?:\\.|[^'\\])*+)'""",
    re.DOTALL,
)
_NUMBER = re.compile(r"-?\d++(?:\.\d++)?(?:[eE][-+]?\d++)?(?![\w.])")
_WORD = re.compile(r"[A-Za-z_]\w*+")
_WORDS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPES = dict(zip("ntrbf\"'\\/", "\n\t\r\b\f\"'\\/", strict=True))


def values(text: str) -> Iterator[Any]:
    """One value after the other, to the end of the text. Numbers may be texts.

    Raises `ValueError` where the text is no value, and at an object that has a key twice.
    """
    at = _skipped(text, 0)
    while at < len(text):
        try:
            value, at = _JSON.raw_decode(text, at)
        except (ValueError, RecursionError):
            value, at = _value(text, at, 0)
        yield value
        at = _skipped(text, at, _BETWEEN)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands there twice")
    return found


_JSON = json.JSONDecoder(strict=False, object_pairs_hook=_unique)


def _value(text: str, at: int, depth: int) -> tuple[Any, int]:
    if depth > _DEEPEST:
        raise ValueError("too deep")
    if string := _STRING.match(text, at):
        return _unescaped(string), string.end()
    if number := _NUMBER.match(text, at):
        return number[0], number.end()
    if (word := _WORD.match(text, at)) and word[0] in _WORDS:
        return _WORDS[word[0]], word.end()
    if text.startswith("{", at):
        return _object(text, at + 1, depth)
    if text.startswith("[", at):
        return _list(text, at + 1, depth)
    raise ValueError(f"no value at character {at}")


def _object(text: str, at: int, depth: int) -> tuple[dict[str, Any], int]:
    pairs: list[tuple[str, Any]] = []
    at = _skipped(text, at)
    while not text.startswith("}", at):
        key, at = _key(text, at)
        at = _skipped(text, _past(":", text, _skipped(text, at)))
        value, at = _value(text, at, depth + 1)
        pairs.append((key, value))
        at = _next(text, at, "}")
    return _unique(pairs), at + 1


def _list(text: str, at: int, depth: int) -> tuple[list[Any], int]:
    items: list[Any] = []
    at = _skipped(text, at)
    while not text.startswith("]", at):
        item, at = _value(text, at, depth + 1)
        items.append(item)
        at = _next(text, at, "]")
    return items, at + 1


def _key(text: str, at: int) -> tuple[str, int]:
    if string := _STRING.match(text, at):
        return _unescaped(string), string.end()
    if word := _WORD.match(text, at):
        return word[0], word.end()
    raise ValueError(f"no key at character {at}")


def _next(text: str, at: int, end: str) -> int:
    """Past the comma after an item, or at the bracket that ends them all."""
    at = _skipped(text, at)
    return at if text.startswith(end, at) else _skipped(text, _past(",", text, at))


def _past(mark: str, text: str, at: int) -> int:
    if not text.startswith(mark, at):
        raise ValueError(f"no {mark!r} at character {at}")
    return at + 1


def _skipped(text: str, at: int, gaps: re.Pattern[str] = _GAP) -> int:
    gap = gaps.match(text, at)
    return gap.end() if gap else at


def _unescaped(string: re.Match[str]) -> str:
    """An escape that JSON does not know stays as it is."""
    body = next(part for part in string.group("long", "double", "single") if part is not None)
    if "\\" not in body:
        return body
    plain = _ESCAPE.sub(_meant, body)
    # Two escapes may be the halves of one character.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _meant(escape: re.Match[str]) -> str:
    code = escape[1]
    return chr(int(code[1:], 16)) if len(code) > 1 else _ESCAPES.get(code, escape[0])
