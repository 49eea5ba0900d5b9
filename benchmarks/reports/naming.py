"""What contenders are called in a report, and how runs that need a second look are marked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from mle_ideator.benchmarks.measures.values import Cell, Contender
from mle_ideator.plain_text import joined_lines, printable

MARK = "†"
"""Stands at whatever a flagged run is part of."""
_LABEL = " ["
"""Begins what tells apart contenders of the same name."""


def told_apart(cells: Mapping[str, Iterable[Cell]]) -> dict[tuple[str, Contender], Contender]:
    """Contenders by results folder; one that several folders have is named with the folder."""
    theirs = {label: {cell.contender for cell in of_one} for label, of_one in cells.items()}
    everywhere = Counter(contender for those in theirs.values() for contender in those)
    return {
        (label, contender): _with_label(contender, label)
        if everywhere[contender] > 1
        else contender
        for label, those in theirs.items()
        for contender in those
    }


def _with_label(contender: Contender, label: str) -> Contender:
    return msgspec.structs.replace(contender, ideator=f"{contender.ideator}{_LABEL}{label}]")


def labels_of(paths: Sequence[tuple[str, ...]]) -> list[str]:
    """The shortest ends of paths (as their parts) that tell them apart."""
    for length in range(1, max(map(len, paths), default=1) + 1):
        ends = ["/".join(parts[-length:]) for parts in paths]
        if len(set(ends)) == len(ends):
            return ends
    return [f"{end} ({number})" for number, end in enumerate(ends, start=1)]


def names_of(contenders: Iterable[Contender]) -> dict[Contender, str]:
    """By the ideator alone where all have the same implementer, or by both; each its own."""
    all_of_them = sorted(set(contenders))
    ideators = short_names(contender.ideator for contender in all_of_them)
    implementers = short_names(contender.implementer for contender in all_of_them)
    return {
        contender: ideators[contender.ideator]
        if len(implementers) == 1
        else f"{ideators[contender.ideator]} + {implementers[contender.implementer]}"
        for contender in all_of_them
    }


def short_names(specs: Iterable[str]) -> dict[str, str]:
    """Specs of tasks or agents, those that hold a path by its last part where that is enough."""
    known = sorted(set(specs))
    short = {spec: plain(_short(spec)) for spec in known}
    met = Counter(short.values())
    return {spec: short[spec] if met[short[spec]] == 1 else plain(spec) for spec in known}


def _short(spec: str) -> str:
    own, bracket, label = spec.partition(_LABEL)
    if "/" not in own or "://" in own:
        return spec
    before, _, path = own.partition("/")
    kind = before.partition(":")[0] + ":" if ":" in before else ""
    return kind + path.rstrip("/").rpartition("/")[2] + bracket + label


def plain(text: str) -> str:
    """On one line, and harmless wherever it is shown."""
    return printable(joined_lines(text))


def marked(name: str, flagged: int) -> str:
    """`name †2` if two of its runs are flagged."""
    return f"{name} {MARK}{flagged}" if flagged else name
