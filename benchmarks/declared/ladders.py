"""Checks of a task's reference solutions and their leaderboard."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from mle_ideator.benchmarks.building import PUBLIC
from mle_ideator.benchmarks.declared.assembling import grader_of, read_built
from mle_ideator.benchmarks.declared.boards import LEADERBOARD, read_leaderboard
from mle_ideator.benchmarks.declared.findings import Finding, found
from mle_ideator.benchmarks.declared.spec import Spec
from mle_ideator.benchmarks.leaderboards import Leaderboard
from mle_ideator.benchmarks.references.computing import (
    REFERENCES,
    Scored,
    given_in,
    references_of,
    scores_of,
)
from mle_ideator.benchmarks.references.values import RUNGS, Reference
from mle_ideator.errors import MleIdeatorError

LEAST = 100
"""So many entries make the three medals tell something."""
TOLERANCE = 0.002
"""Share of a score by which it may differ between machines and versions of libraries."""

Entries = dict[str, tuple[float, float]]
"""Public and private score by reference, in the file's order."""


def check_references(folder: Path, spec: Spec, made: Path, whole: bool) -> Iterator[Finding]:
    """The leaderboard, and some references run again; all, if `whole`. `made` is the built task."""
    if not (folder / LEADERBOARD).exists():
        advice = "there are no reference solutions and their scores, so no medals and percentiles"
        yield Finding("leaderboard", "warning", f"{LEADERBOARD} is missing: {advice}")
        return
    try:
        board = read_leaderboard(folder)
        entries = _entries(folder)
        references = references_of(folder) if (folder / REFERENCES).exists() else []
    except Exception as error:  # references.py is the person's own
        yield Finding("leaderboard", "failed", " ".join(str(error).split()))
        return
    assert board is not None  # noqa: S101 - the file exists
    yield _ordered(board, entries)
    if not references:
        advice = "nobody can tell where the leaderboard comes from"
        yield Finding("references", "warning", f"{REFERENCES} is missing: {advice}")
        return
    yield _laddered(board, entries, references)
    yield _beats_baseline(board, made)
    yield _reproduced(spec, made, entries, references, whole)


def _entries(folder: Path) -> Entries:
    with (folder / LEADERBOARD).open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    return {row["reference"]: (float(row["public"]), float(row["private"])) for row in rows}


def _ordered(board: Leaderboard, entries: Entries) -> Finding:
    private = [score for _, score in entries.values()]
    if private != sorted(private, reverse=board.higher_is_better):
        return Finding("leaderboard", "failed", f"{LEADERBOARD} is not sorted, the best first")
    if len(private) != len(board.scores):
        return Finding("leaderboard", "failed", f"{LEADERBOARD} has a reference twice")
    few = len(private) < LEAST
    wrong = f"{len(private)} references are few: have {LEAST} or more" if few else ""
    return found("leaderboard", wrong, f"{len(private)} references, sorted", verdict="warning")


def _laddered(board: Leaderboard, entries: Entries, references: list[Reference]) -> Finding:
    names = {reference.name for reference in references}
    if odd := sorted(names ^ entries.keys()):
        where = LEADERBOARD if odd[0] in names else REFERENCES
        return Finding("ladder", "failed", f"{odd[0]!r} is not in {where}: compute it again")
    by_rung = {rung: [entries[r.name][1] for r in references if r.rung == rung] for rung in RUNGS}
    middles = [median(scores) for scores in by_rung.values() if scores]
    if middles != sorted(middles, reverse=not board.higher_is_better):
        told = ", ".join(f"{m:.5g}" for m in middles)
        return Finding("ladder", "warning", f"a higher rung is no better than a lower: {told}")
    medals = {name: board.threshold(name) for name in ("gold", "silver", "bronze")}
    best = max if board.higher_is_better else min
    weak = by_rung["weak"]
    gold = weak and best(best(weak), medals["gold"]) != medals["gold"]
    wrong = "a weak reference has a gold medal" if gold else ""
    told = ", ".join(f"{name} {score:.5g}" for name, score in medals.items())
    return found("ladder", wrong, told, verdict="warning")


def _beats_baseline(board: Leaderboard, made: Path) -> Finding:
    medal = board.medal(read_built(made).baseline.private)
    wrong = f"the trivial solution has a {medal} medal: add better references" if medal else ""
    return found("baseline medal", wrong, "the trivial solution has no medal", verdict="warning")


def _reproduced(
    spec: Spec, made: Path, entries: Entries, references: list[Reference], whole: bool
) -> Finding:
    chosen = references if whole else _one_of_each(references)
    try:
        scored = list(scores_of(chosen, given_in(made / PUBLIC, spec), grader_of(spec, made)))
    except MleIdeatorError as error:
        return Finding("references", "failed", str(error))
    except Exception as error:  # references.py is the person's own
        return Finding("references", "failed", f"{type(error).__name__}: {error}")
    odd = [one for one in scored if not _close(one, entries, spec)]
    ran = f"{len(scored)} of {len(references)} references"
    if not odd:
        return Finding("references", "ok", f"{ran} score as the leaderboard says")
    one = odd[0]
    wrong = (
        f"{len(odd)} of {ran} do not score as the leaderboard says: {one.name!r} "
        f"{one.private:.6g}, not {entries[one.name][1]:.6g}"
    )
    return Finding("references", "failed", wrong)


def _one_of_each(references: list[Reference]) -> list[Reference]:
    firsts = {reference.rung: reference for reference in reversed(references)}
    return [firsts[rung] for rung in RUNGS if rung in firsts]


def _close(one: Scored, entries: Entries, spec: Spec) -> bool:
    public, private = entries.get(one.name, (float("nan"),) * 2)
    return all(
        abs(now - then) <= max(TOLERANCE * abs(then), spec.min_delta)
        for now, then in ((one.public, public), (one.private, private))
    )
