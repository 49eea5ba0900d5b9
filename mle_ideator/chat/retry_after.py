"""When a server says to come back."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

_TRY_AGAIN = re.compile(r"(?:try again|retry) in ((?:\d+h)?(?:\d+m(?!s))?(?:[\d.]+(?:ms|s))?)")
_PART = re.compile(r"([\d.]+)(ms|h|m|s)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def retry_after_s(headers: Mapping[str, str], message: str = "") -> float | None:
    """Seconds from now, never negative: from the headers, or from the words; `None` if unsaid."""
    milliseconds = _float(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    told = headers.get("retry-after", "")
    seconds = _float(told)
    if seconds is not None:
        return seconds
    return _until(told) if told else _in_words(message)


def _float(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


def _until(date: str) -> float | None:
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _in_words(message: str) -> float | None:
    found = _TRY_AGAIN.search(message)
    parts = _PART.findall(found.group(1)) if found else []
    return sum(float(number) * _SECONDS[unit] for number, unit in parts) if parts else None
