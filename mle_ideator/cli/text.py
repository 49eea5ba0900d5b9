"""Lines, times and harmless text for a terminal."""

from __future__ import annotations

from mle_ideator.plain_text import printable

__all__ = ["duration", "one_line", "printable"]


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
