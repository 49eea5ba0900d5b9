"""The leaderboard of a declared task: `leaderboard.csv`, one line a reference solution."""

from __future__ import annotations

import csv
from pathlib import Path

from mle_ideator.benchmarks.declared.spec import read_spec
from mle_ideator.benchmarks.leaderboards import Leaderboard
from mle_ideator.errors import TaskError

LEADERBOARD = "leaderboard.csv"
COLUMNS = ("reference", "public", "private")
"""Name of the reference solution, and its scores."""


def read_leaderboard(folder: Path) -> Leaderboard | None:
    """`None` where the task has none. Raises `TaskError` if it can not be read."""
    file = folder / LEADERBOARD
    if not file.exists():
        return None
    higher = read_spec(folder).higher_is_better
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            scores = [float(row["private"]) for row in csv.DictReader(lines)]
        return Leaderboard(scores=tuple(sorted(scores, reverse=higher)), higher_is_better=higher)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise TaskError(f"{file} is no leaderboard: {error}") from error
