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


def one_line(text: str, width: int) -> str:
    """The first line with anything on it, cut to a width."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= width else line[: width - 1] + "…"


def duration(seconds: float) -> str:
    """`41s`, `12m05s`, `3h20m`."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 1:
        return f"{rest}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{rest:02d}s"
