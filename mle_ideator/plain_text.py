"""What agents, cells and data say, made harmless for a terminal."""

from __future__ import annotations

import unicodedata


def printable(text: str) -> str:
    """Control and formatting characters as visible signs; newlines and tabs stay.

    So no escape sequence, right-to-left override or carriage return of an agent reaches the
    terminal.
    """
    return "".join(map(_visible, text))


def _visible(char: str) -> str:
    if char in "\n\t" or unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co"}:
        return char
    code = ord(char)
    return chr(0x2400 + code) if code < 0x20 else "\N{SYMBOL FOR DELETE}" if code == 0x7F else "�"
