"""What checks of a task find."""

from __future__ import annotations

from typing import Literal

from mle_ideator.types import Value

Verdict = Literal["ok", "warning", "failed"]


class Finding(Value, frozen=True):
    """One thing that was checked."""

    check: str
    """A stable name."""
    verdict: Verdict
    message: str
    """One line: what was found, and what to do if it is not well."""


def found(check: str, wrong: str, right: str, *, verdict: Verdict = "failed") -> Finding:
    """`right` if nothing is wrong."""
    return Finding(check, verdict if wrong else "ok", wrong or right)
