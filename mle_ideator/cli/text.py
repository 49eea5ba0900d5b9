"""Lines, times and harmless text for a terminal."""

from __future__ import annotations

from mle_ideator.plain_text import one_line, printable

__all__ = ["duration", "one_line", "printable"]


def duration(seconds: float) -> str:
    """`41s`, `12m05s`, `3h20m`."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 1:
        return f"{rest}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{rest:02d}s"
