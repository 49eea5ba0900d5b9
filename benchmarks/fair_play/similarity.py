"""How alike scripts are, whatever their names, layout, comments, numbers and texts.

A script becomes a line of tokens: names of its own are all alike, imported ones are what they stand
for, numbers and texts are only that. Of the hashes of all runs of `GRAM` tokens, the least of each
`WINDOW` is kept (winnowing: Schleimer, Wilkerson and Aiken, SIGMOD 2003), so any passage of
`GRAM + WINDOW − 1` common tokens is found. Two scripts' similarity is the share that the hashes of
both have among the hashes of either (Jaccard).

What it means: 1 is the same program, by another name perhaps; two people's solutions of one
task have little more than the usual phrases in common. Runs of one deterministic agent, or of two
that write from the same templates, are alike on purpose: there it tells nothing of fairness.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterator, Mapping
from zlib import crc32

import numpy as np
import numpy.typing as npt

from mle_ideator.types import Value

GRAM = 10
"""Tokens: about one statement."""
WINDOW = 6

Hashes = npt.NDArray[np.uint64]


class Pair(Value, frozen=True):
    """Two scripts by their names, the first in order first."""

    one: str
    other: str
    similarity: float


def similarity(one: str, other: str) -> float:
    """From 0, nothing in common, to 1."""
    a, b = fingerprint(one), fingerprint(other)
    common = len(np.intersect1d(a, b, assume_unique=True))
    return common / max(len(a) + len(b) - common, 1)


def similar_pairs(codes: Mapping[str, str], threshold: float = 0.8) -> list[Pair]:
    """All pairs that are at least so similar, the most similar first.

    `codes` are the scripts of one task by name, of its runs say. Equal scripts cost nothing; memory
    grows with the square of the number of different ones (8 MB for 1,000).
    """
    names, prints = list(codes), _fingerprints(codes)
    if not names:
        return []
    alike = _jaccard(list(prints.values()))
    place = {code: position for position, code in enumerate(prints)}
    at = np.array([place[codes[name]] for name in names])
    firsts, seconds = np.triu_indices(len(names), 1)
    values = alike[at[firsts], at[seconds]]
    found = np.flatnonzero(values >= threshold)
    pairs = []
    for i in found:
        one, other = sorted((names[firsts[i]], names[seconds[i]]))
        pairs.append(Pair(one, other, float(values[i])))
    return sorted(pairs, key=lambda pair: (-pair.similarity, pair.one, pair.other))


def _fingerprints(codes: Mapping[str, str]) -> dict[str, Hashes]:
    return {code: fingerprint(code) for code in dict.fromkeys(codes.values())}


def _jaccard(prints: list[Hashes]) -> npt.NDArray[np.float64]:
    """Between each two of them: shape (n, n)."""
    from scipy.sparse import csr_matrix

    sizes = np.array([len(each) for each in prints])
    _, column = np.unique(np.concatenate(prints), return_inverse=True)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    has = csr_matrix((np.ones(len(column), np.int32), column, ends))
    common = (has @ has.T).toarray()
    return np.asarray(common / np.maximum(sizes[:, None] + sizes[None, :] - common, 1), float)


def fingerprint(code: str) -> Hashes:
    """The script's hashes, each once, in order."""
    tokens = np.array([crc32(token.encode()) for token in _tokens(code)], np.uint64)
    size = min(GRAM, max(len(tokens), 1))
    tokens = np.pad(tokens, (0, max(size - len(tokens), 0)))
    weights = np.array([pow(_BASE, power, 2**64) for power in range(size)], np.uint64)
    windows = np.lib.stride_tricks.sliding_window_view(tokens, size)
    grams = (windows * weights).sum(axis=1, dtype=np.uint64)
    grams ^= grams >> np.uint64(29)  # so that the least is no matter of the first token
    grams *= np.uint64(0xBF58476D1CE4E5B9)
    window = min(WINDOW, len(grams))
    least = np.lib.stride_tricks.sliding_window_view(grams, window).min(axis=1)
    return np.unique(least)


_BASE = 0x9E3779B97F4A7C15

_TOKEN = re.compile(
    r"""
    (?P<comment>\#[^\n]*)
  | (?P<text>[rRbBuUfF]{0,2}(?:'''[\s\S]*?'''|\"\"\"[\s\S]*?\"\"\"
        |'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"))
  | (?P<number>\d[\w.]*)
  | (?P<attribute>\.\s*[^\W\d]\w*)
  | (?P<name>[^\W\d]\w*)
  | (?P<sign>\*\*=?|//=?|>>=?|<<=?|[-+*/%@&|^=<>!:]=|->|[^\s,;\\])
    """,
    re.VERBOSE,
)
_REMARK = re.compile(
    r"^[ \t]*[rRuU]?(?:'''[\s\S]*?'''|\"\"\"[\s\S]*?\"\"\"|'[^'\n]*'|\"[^\"\n]*\")[ \t]*$",
    re.MULTILINE,
)
"""A text alone on its lines: a docstring."""
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+[\w.]+[ \t]+)?import[ \t]+(\([^)]*\)|[^\n#]*)", re.MULTILINE
)
_ALIAS = re.compile(r"([\w.]+)(?:\s+as\s+(\w+))?")


def _tokens(code: str) -> Iterator[str]:
    """Works on any text, also on code with faults."""
    code = _REMARK.sub("", code)
    imported: dict[str, str] = {}
    for names in _IMPORT.findall(code):
        for name, alias in _ALIAS.findall(names):
            imported[alias or name] = name
    for found in _TOKEN.finditer(_IMPORT.sub("", code)):
        kind, text = found.lastgroup, found[0]
        if kind == "comment":
            continue
        if kind == "name":
            known = imported.get(text) or (text if text in _WORDS else None)
            yield known or "name"
        elif kind in ("text", "number"):
            yield kind
        else:
            yield "".join(text.split())


_WORDS = frozenset(keyword.kwlist) | frozenset(vars(builtins))
