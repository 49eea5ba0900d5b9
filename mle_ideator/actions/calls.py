"""Native tool calls: arguments as models write them, checked against what an action needs."""

from __future__ import annotations

import ast
import json
import re
import warnings
from typing import Any

from mle_ideator.actions.code import unfenced
from mle_ideator.errors import unknown
from mle_ideator.messages import ToolCall
from mle_ideator.types import Action, Execute, Finish, HelpRequest, Malformed, SeekHelp

PARAMETERS: dict[str, tuple[str, ...]] = {
    "execute_python": ("code",),
    "execute_bash": ("code",),
    "seek_help": ("problem", "attempts", "goal"),
    "finish": ("reason",),
}
"""The tools and their parameters, all of them texts."""
REQUIRED = ("code", "problem")
"""Parameters that can not be left out."""
_FENCED = re.compile(r"\s*```\w*\s*(.*?)\s*```\s*", re.DOTALL)
_MAX_REPAIRED = 100_000
_MAX_BRACKETS = 2_000
"""Rubbish beyond this would keep a tolerant reader busy for seconds."""


def read_call(call: ToolCall) -> Action:
    """The action that a call asks for. Never raises."""
    if call.name not in PARAMETERS:
        return Malformed(unknown("tool", call.name, PARAMETERS).rstrip(".?") + ".")
    given, wrong = _arguments(call)
    if wrong:
        return Malformed(wrong)
    if call.name == "finish":
        return Finish(given["reason"])
    if call.name == "seek_help":
        return SeekHelp(HelpRequest(given["problem"], given["attempts"], given["goal"]))
    python = call.name == "execute_python"
    code, wrong = unfenced(given["code"], "python" if python else "bash")
    if wrong or not code:
        return Malformed(f"the code of {call.name} can not be read: {wrong or 'it is empty'}.")
    return Execute("python" if python else "bash", code)


def _arguments(call: ToolCall) -> tuple[dict[str, str], str]:
    """Every parameter as a text, and what is wrong, if anything is."""
    loaded = _loaded(call.arguments) if call.arguments.strip() else {}
    if isinstance(loaded, str):  # JSON within JSON
        loaded = _loaded(loaded)
    if not isinstance(loaded, dict):
        return {}, f"the arguments of {call.name} are no JSON object."
    texts: dict[str, str] = {}
    for name in PARAMETERS[call.name]:
        text = _as_text(loaded.get(name))
        if text is None:
            kind = type(loaded[name]).__name__
            return {}, f"{call.name} needs `{name}` as a text, not as {kind}."
        if name in REQUIRED and not text.strip():
            given = f", it got {', '.join(map(str, loaded))[:200]}" if loaded else ""
            return {}, f"{call.name} needs `{name}`{given}."
        texts[name] = text if name == "code" else text.strip()
    return texts, ""


def _as_text(value: Any) -> str | None:
    """A number is written out, lines are joined, nothing is empty; the rest is no text."""
    if value is None:
        return ""
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    return None


def _loaded(text: str) -> Any:
    """JSON; or a Python literal; or nearly JSON, if it is whole. `None` if nothing fits."""
    if fenced := _FENCED.fullmatch(text):
        text = fenced[1]
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        pass
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # escapes that Python does not know
            return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        pass
    return _repaired(text.strip())


def _repaired(text: str) -> Any:
    """Only of what has an end: half a call must not be completed to a whole one."""
    brackets = sum(map(text.count, "{[("))
    if not text.endswith("}") or len(text) > _MAX_REPAIRED or brackets > _MAX_BRACKETS:
        return None
    from json_repair import loads

    try:
        return loads(text)
    except (ValueError, RecursionError):
        return None
