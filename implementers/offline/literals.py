"""Python literals that a person would write, whatever the names in the data are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

WIDTH = 100


def text(value: str) -> str:
    """A double-quoted literal on one line, without three quotes in a row."""
    quoted = json.dumps(value, ensure_ascii=not value.isprintable())
    return quoted.replace("'''", r"\x27\x27\x27")


def listed(name: str, values: Sequence[str]) -> str:
    """`name = ["a", "b"]`, on as many lines as it takes."""
    items = [text(value) for value in values]
    line = f"{name} = [{', '.join(items)}]"
    if len(line) <= WIDTH:
        return line
    rows, row = [], ""
    for item in items:
        if row and len(row) + len(item) > WIDTH - 8:
            rows.append(row)
            row = ""
        row += f"{' ' if row else ''}{item},"
    return "\n".join([f"{name} = [", *(f"    {row}" for row in [*rows, row]), "]"])


def mapping(name: str, values: Mapping[str, object]) -> str:
    """`name = {…}` with one entry a line."""
    entries = [f"    {text(key)}: {json_like(value)}," for key, value in values.items()]
    return "\n".join([f"{name} = {{", *entries, "}"])


def json_like(value: object) -> str:
    return repr(value).replace("'", '"')


def assignment(name: str, code: str) -> list[str]:
    """`name = code` as lines; calls that are too long have one argument a line."""
    return _broken(f"{name} = {code}", "", WIDTH - 4)


def _broken(code: str, indent: str, width: int) -> list[str]:
    """The line itself if it fits, else its outermost call with one argument a line."""
    opening = code.find("(")
    if len(indent + code) <= width or opening < 0 or not code.rstrip(",").endswith(")"):
        return [indent + code]
    end = code.rindex(")")
    lines = [f"{indent}{code[: opening + 1]}"]
    for argument in _arguments(code[opening + 1 : end]):
        lines += _broken(f"{argument},", indent + "    ", width)
    return [*lines, indent + code[end:]]


def _arguments(inside: str) -> list[str]:
    """Parts between the commas that stand in no bracket; generated strings hold no brackets."""
    parts, depth, start = [], 0, 0
    for position, letter in enumerate(inside):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(inside[start:position].strip())
            start = position + 1
    return [*parts, inside[start:].strip()]
