"""Native tool calls: arguments as models write them, checked against what an action needs."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

from mle_ideator.actions.code import INVISIBLE, unfenced
from mle_ideator.actions.lenient import values
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
_MOST_OBJECTS = 10
"""With as many there is no telling what was meant."""
_MARK = "```"
_LANGUAGE = re.compile(r"\w*+")


def read_call(call: ToolCall) -> tuple[Action, int]:
    """The action that a call asks for, and how many more its further arguments do. Never raises."""
    if call.name not in PARAMETERS:
        return Malformed(unknown("tool", call.name[:80], PARAMETERS).rstrip(".?") + "."), 0
    objects = _objects(call.arguments)
    if not objects:
        return Malformed(
            f"the arguments of {call.name} are no JSON object that can be read; quotes and "
            "backslashes in its texts must be escaped."
        ), 0
    return _action(call.name, objects[0]), len(objects) - 1


def _action(tool: str, arguments: dict[str, Any]) -> Action:
    given, wrong = _texts(tool, arguments)
    if wrong:
        return Malformed(wrong)
    if tool == "finish":
        return Finish(given["reason"])
    if tool == "seek_help":
        return SeekHelp(HelpRequest(given["problem"], given["attempts"], given["goal"]))
    python = tool == "execute_python"
    code, wrong = unfenced(given["code"], "python" if python else "bash")
    if wrong or not code:
        return Malformed(f"the code of {tool} can not be read: {wrong or 'it is empty'}.")
    return Execute("python" if python else "bash", code)


def _texts(tool: str, arguments: dict[str, Any]) -> tuple[dict[str, str], str]:
    """Every parameter as a text, and what is wrong, if anything is."""
    texts: dict[str, str] = {}
    for name in PARAMETERS[tool]:
        text = _as_text(arguments.get(name))
        if text is None:
            kind = type(arguments[name]).__name__
            return {}, f"{tool} needs `{name}` as a text, not as {kind}."
        if name in REQUIRED and not text.strip():
            given = f", it got {', '.join(arguments)[:200]}" if arguments else ""
            return {}, f"{tool} needs `{name}`{given}."
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


def _objects(text: str) -> list[dict[str, Any]]:
    """The objects that a text is, one after the other; none if it is anything else as well."""
    if not text.strip():
        return [{}]
    try:
        found = list(islice(values(_bare(text)), _MOST_OBJECTS))
        if len(found) == 1 and isinstance(found[0], str):  # JSON within JSON
            found = list(islice(values(_bare(found[0])), _MOST_OBJECTS))
    except ValueError:
        return []
    whole = len(found) < _MOST_OBJECTS and all(isinstance(value, dict) for value in found)
    return found if whole else []


def _bare(text: str) -> str:
    """Without a fence around it."""
    text = text.strip(f"{INVISIBLE} \t\r\n")
    if len(text) < 2 * len(_MARK) or not (text.startswith(_MARK) and text.endswith(_MARK)):
        return text
    inner = text.removeprefix(_MARK).removesuffix(_MARK)
    return _LANGUAGE.sub("", inner, count=1).strip()
