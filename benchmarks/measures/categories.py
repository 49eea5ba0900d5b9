"""What an idea is about, told from its words.

The words are those of `operations`, which the offline agents use, and further ones for what
language models write (`category_words`). How often this is right: `docs/metrics.md`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache, lru_cache

from mle_ideator.benchmarks.measures.category_words import WORDS
from mle_ideator.operations import Category, mentions
from mle_ideator.types import Idea

MOST_READ = 2_000
"""Characters of an action; the foremost thing is not said after that, and reading takes time."""
_CLEAR = 1.0
"""The least weight that tells a category."""
_HALF_AT = 150
"""Characters after which a word weighs half: what is to be done is said first."""
_OF_OPERATION, _OF_MODEL = 2.0, 1.0
"""A model is often named only as what the idea is for."""
_OF_LEAD = 1.5
_FINE_TUNING = re.compile("fine-tun", re.IGNORECASE)
"""To fit a network that was trained before; `tune` would find parameters to be searched in it."""

LEADS: dict[Category, str] = {
    "data preparation": r"drop|remov\w*|filter|strip|clean|convert|imput\w*|fill|merge|join"
    r"|left-join|bring|group|collapse|standardi[sz]e|scale|parse|read|deduplicate|restrict"
    r"|winsori[sz]e",
    "feature engineering": r"add|comput\w*|construct|derive|creat\w*|extract|engineer|encode"
    r"|include|append|represent|enrich|prune|concatenate|count|from|describe|express|generate",
    "model choice": r"replac\w*|switch|swap|fit|model|fine[-_]tun\w*|move|treat|adopt",
    "training": r"evaluate|validate|weight|weigh|label|over-?sample|under-?sample|down-?sample"
    r"|up-?sample|augment|flip|rotate|optimi[sz]e|pre-?train|re-?fit",
    "hyper-parameters": r"increas\w*|decreas\w*|rais\w*|lower|reduc\w*|tune|sweep|search|grid\w*"
    r"|shrink|limit|fewer|more|double|halve|set|loosen|tighten|regulari[sz]e|run",
    "ensembling": r"averag\w*|blend|stack|combine|mix|bag|ensemble|pool",
    "post-processing": r"round|clip|calibrate|shift|force|choose|multiply|smooth|bound|threshold"
    r"|cap|rescale|break|adjust|clamp|snap",
}
"""The verb that an action begins with says much of what it is about."""

_LEAD = re.compile(r"\W*([\w-]+)")

CONTEXT = re.compile(
    r"\b(?:instead of|rather than|in place of|unlike|in contrast to|on top of)\b[^,.;:]*"
    r"|\b(?:because|since|so that|while)\b[^.;]*|(?<=,) (?:as|so|which)\b[^.;]*|\b(?:keep(?:ing)?"
    r"|leav(?:e|ing)|continu(?:e|ing))\b[^.,;]*?(?:as (?:it|they) (?:is|are)|unchanged"
    r"|everything else|\bthe (?:current|present|same)\b)(?:(?! and | but )[^.,;])*"
    r"|\b(?:the|an?) (?:current|existing|present|same)(?: [\w-]+){1,2}|\bat present\b[^.;,]*"
    r"|\bdo(?: not|n't)\b[^.;,]*"
    r"|\bwithout\b[^.;,]*|(?<=[.;,)] )(?:and |then |only then )*(?:check|make sure|compar|report"
    r"|re-?train|re-?fit|fit the same|keep|leav|nothing else|submit|monitor|verify)\w*\b[^.;]*"
    r"|(?<=\. )[^.;]{0,40}\b(?:the same|unchanged|untouched|as it is|no(?:thing)? else)\b[^.;]*",
    re.IGNORECASE,
)
"""What is said of the situation, of reasons, and of what is not to be done."""


def categories_of(idea: Idea) -> tuple[Category, ...]:
    """What an idea is about, the foremost first, by its action; empty where it can not be told."""
    return categories_in(idea.action)


@lru_cache(maxsize=4096)
def categories_in(text: str) -> tuple[Category, ...]:
    """The same for an action that stands alone."""
    said = CONTEXT.sub(_blanked, _FINE_TUNING.sub("fine_tun", text[:MOST_READ]))
    weights: dict[Category, float] = defaultdict(float)
    for category, start, weight in _mentioned(said):
        weights[category] += weight / (1 + start / _HALF_AT)
    if weights["ensembling"]:
        weights["model choice"] /= 2  # an ensemble names its members
    clear = [category for category, weight in weights.items() if weight >= _CLEAR]
    return tuple(sorted(clear, key=lambda category: -weights[category]))


def _blanked(match: re.Match[str]) -> str:
    """So that positions stay, and nothing is found across it."""
    return "." * len(match.group())


def _mentioned(text: str) -> Iterator[tuple[Category, int, float]]:
    """Each pattern that occurs: its category, where it first does, and its weight."""
    seen = set()
    for one in mentions(text):
        operation = one.operation
        if operation.name not in seen:
            seen.add(operation.name)
            of_model = operation.category == "model choice"
            yield operation.category, one.start, _OF_MODEL if of_model else _OF_OPERATION
    if lead := _LEAD.match(text):
        yield from (
            (c, 0, _OF_LEAD)
            for c, verbs in LEADS.items()
            if re.fullmatch(verbs, lead.group(1).lower())
        )
    for category, weight, pattern in _patterns():
        if found := pattern.search(text):
            yield category, found.start(), float(weight)


@cache
def _patterns() -> tuple[tuple[Category, int, re.Pattern[str]], ...]:
    return tuple(
        (category, weight, re.compile(rf"(?:\b|(?<=_)){pattern}", re.IGNORECASE))
        for category, by_weight in WORDS.items()
        for weight, patterns in by_weight.items()
        for pattern in (f"(?:{words})" for words in patterns)
    )
