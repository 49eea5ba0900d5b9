"""Text to idea: the structured form of an ideator's answer (arXiv 2601.17596), strictly read.

    <analysis>Refine … or Revert to #k …</analysis>
    <action>…</action>
    <rationale>…</rationale>

or a JSON object with these three keys. Each part stands there exactly once, in this order, and is
not empty. Forgiven is what does not change the meaning: prose and fences around, upper case, blank
space, a last `</rationale>` that a stop sequence took away, JSON that is nearly JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

from mle_ideator.types import Idea

PARTS = ("analysis", "action", "rationale")
MAX_PART_CHARS = 4000
"""A longer part is no part of an idea."""
STOP = "</rationale>"
"""Where an answer in tags ends."""

# Without quotes and backslashes grammars made of it can not go wrong.
_TEXT = r'[^"\\]+'

_NAMES = "|".join(PARTS)
_TAG = re.compile(rf"<\s*(?:(/)\s*)?({_NAMES})\s*>", re.IGNORECASE)
_QUOTED = re.compile(rf"""([`"'])</?(?:{_NAMES})>(?:[^`"'\n<]*</(?:{_NAMES})>)?\1""", re.IGNORECASE)
_KEY = re.compile(rf"""["']({_NAMES})["']\s*:""", re.IGNORECASE)
_REFINE = re.compile(r"^\W*refin(?:e|ing)\b", re.IGNORECASE)
_OBJECT = re.compile(r"\s*(?:(?:```|~~~)\s*(?:json\s*)?)?\{", re.IGNORECASE)
_CUT_TAG = re.compile(r"</\w*$")
_ORDER = [f"<{end}{name}>" for name in PARTS for end in ("", "/")]
_MAX_BRACKETS = 200
_MAX_MARKS = 300
"""More of them are rubbish, on which a tolerant reader would spend seconds."""
_BRACKETS = re.compile(r"[{\[]")
_MARKS = re.compile(r"""[{}\[\]:"'`“”\\]""")


def read_idea(text: str) -> tuple[Idea | None, str]:
    """The idea in a model's answer, or `None` and one sentence on what is wrong with it.

    The sentence can be sent back to the model. Never raises.
    """
    text = _without_thought(text)
    if not text.strip():
        return None, "it is empty"
    if _TAG.search(text) and not _OBJECT.match(text):
        parts, wrong = _in_tags(text)
    elif "{" in text:
        parts, wrong = _in_json(text)
    else:
        parts, wrong = {}, "it has neither the tags <analysis>, <action>, <rationale> nor JSON"
    wrong = wrong or _wrong_with(parts)
    return (None, wrong) if wrong else (Idea(**parts), "")


def well_formed(idea: Idea) -> bool:
    """Three parts, none empty, and an analysis that starts with *refine* or *revert to #k*."""
    return not _wrong_with({name: getattr(idea, name) for name in PARTS})


def idea_schema(numbers: Collection[int] = ()) -> dict[str, Any]:
    """JSON schema of an idea, where these solutions exist, for servers that keep to a schema."""
    reverts = f"|Revert to #({'|'.join(map(str, numbers))})" if numbers else ""
    text = {"type": "string", "pattern": f"^[A-Z]{_TEXT}$"}
    opening = {"type": "string", "pattern": f"^(Refine{reverts}): {_TEXT}$"}
    return {
        "type": "object",
        "properties": {"analysis": opening, "action": text, "rationale": text},
        "required": list(PARTS),
        "additionalProperties": False,
    }


def wrong_revert(idea: Idea, numbers: Collection[int]) -> str:
    """Why the idea can not go back to the solution that it names; empty if it can, or stays."""
    number = idea.reverts_to
    if number is None or number in numbers:
        return ""
    if not numbers:
        return f"there is no solution #{number}, nor any other yet; start with Refine"
    return f"there is no solution #{number}; the solutions that exist are {listed(numbers)}"


def listed(numbers: Collection[int]) -> str:
    """`#1, #2, #3`, and where that gets long `#1 to #40`."""
    if len(numbers) > 12:
        return f"#{min(numbers)} to #{max(numbers)}"
    return ", ".join(f"#{number}" for number in numbers)


def _wrong_with(parts: dict[str, str]) -> str:
    """What keeps three texts from being an idea; empty if nothing does."""
    for name, part in parts.items():
        if not re.search(r"\w", part):
            return f"{name} is empty"
        if len(part) > MAX_PART_CHARS:
            return f"{name} has {len(part)} characters, and at most {MAX_PART_CHARS} are allowed"
    idea = Idea(**parts)
    if idea.reverts_to is None and not _REFINE.match(idea.analysis):
        return 'analysis must start with "Refine" or with "Revert to #k", k being a number'
    return ""


def _without_thought(text: str) -> str:
    """Some servers leave the reasoning of a model in its answer."""
    _, end, answer = text.partition("</think>")
    return answer if end and ("{" in answer or _TAG.search(answer)) else text


# ------------------------------------------------------------------------------------- tags


def _in_tags(text: str) -> tuple[dict[str, str], str]:
    # A tag in quotes is only mentioned. Hidden, not removed: positions stay.
    shown = _QUOTED.sub(lambda quoted: "_" * len(quoted[0]), text)
    tags = list(_TAG.finditer(shown))
    order = [f"<{tag[1] or ''}{tag[2].lower()}>" for tag in tags]
    if order not in (_ORDER, _ORDER[:-1]):
        return {}, _out_of_order(order)
    ends = [tag.start() for tag in tags[1:]] + [len(text)] * (len(tags) % 2)
    bodies = [text[tag.end() : end] for tag, end in zip(tags[::2], ends[::2], strict=True)]
    if len(tags) % 2:
        bodies[-1] = _without_fence(_CUT_TAG.sub("", bodies[-1]).rstrip())
    return {name: body.strip() for name, body in zip(PARTS, bodies, strict=True)}, ""


def _without_fence(body: str) -> str:
    """Without the end of a fence that began before the first tag."""
    before, _, last = body.rpartition("\n")
    return before if last.strip() in ("```", "~~~") else body


def _out_of_order(order: list[str]) -> str:
    for tag in _ORDER:
        if order.count(tag) > 1:
            return (
                f"{tag} stands there {order.count(tag)} times; write each part exactly once, and "
                "a tag that is only mentioned in backticks"
            )
    for tag in _ORDER[:-1]:
        if tag not in order:
            return f"{tag} is missing"
    return "the parts must follow each other as <analysis>, <action>, <rationale>, each closed"


# ------------------------------------------------------------------------------------- JSON


def _in_json(text: str) -> tuple[dict[str, str], str]:
    text = text[text.index("{") : text.rfind("}") + 1]
    if not text:
        return {}, "the JSON object is not closed"
    if len(text) > 4 * MAX_PART_CHARS or len(_BRACKETS.findall(text)) > _MAX_BRACKETS:
        return {}, "it is no JSON object of three texts, but much more"
    keys = [key.lower() for key in _KEY.findall(text)]
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        times = f"{keys.count(twice)} times"
        return {}, f'the key "{twice}" stands there {times}; write one JSON object'
    found = _loaded(text, repair=len(_MARKS.findall(text)) <= _MAX_MARKS)
    if not isinstance(found, dict):
        return {}, "it is no single JSON object"
    named = {str(key).strip().lower(): value for key, value in found.items()}
    if len(named) < len(found) or set(named) != set(PARTS):
        return {}, f"the JSON object must have the keys {', '.join(PARTS)}, and no others"
    for name in PARTS:
        if isinstance(named[name], bool) or not isinstance(named[name], str | int | float):
            return {}, f"{name} must be one text, not {json.dumps(named[name])[:40]}"
    return {name: str(named[name]).strip() for name in PARTS}, ""


def _loaded(text: str, *, repair: bool) -> object:
    """What the text says as JSON, or if it may be repaired as nearly JSON; `None` if nothing."""
    try:
        return json.JSONDecoder(strict=False).raw_decode(text)[0]
    except (ValueError, RecursionError):
        pass
    if not repair:
        return None
    from json_repair import loads

    try:
        return loads(text)
    except (ValueError, RecursionError):
        return None
