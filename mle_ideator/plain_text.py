"""What agents, cells, data and errors say: harmless for a terminal, and on one line."""

from __future__ import annotations

import unicodedata


def printable(text: str) -> str:
    """Control and formatting characters as visible signs; newlines and tabs stay.

    So no escape sequence, right-to-left override or carriage return of an agent reaches the
    terminal.
    """
    lines = text.split("\n")  # most need nothing, and reports hold megabytes
    return "\n".join(line if line.isprintable() else _shown(line) for line in lines)


def one_line(text: str, width: int) -> str:
    """The first line with anything on it, cut to a width."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= width else line[: width - 1] + "…"


def joined_lines(said: object) -> str:
    """All of it on one line."""
    return " ".join(str(said).split())


def _shown(line: str) -> str:
    return "".join(map(_visible, line))


def _visible(char: str) -> str:
    if char in "\n\t" or unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co"}:
        return char
    code = ord(char)
    return chr(0x2400 + code) if code < 0x20 else "\N{SYMBOL FOR DELETE}" if code == 0x7F else "�"
