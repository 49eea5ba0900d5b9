"""An action as a model would write it: what `read_action` reads back as the same."""

from __future__ import annotations

import json
import re

from mle_ideator.actions.blocks import LANGUAGE
from mle_ideator.actions.calls import PARAMETERS
from mle_ideator.actions.code import fenced
from mle_ideator.messages import ToolCall
from mle_ideator.types import Execute, Finish, SeekHelp

_NEEDS_A_FENCE = re.compile(r"\A\s*(?:`{3,}|~{3,})|<[ \t]*/?[ \t]*execute", re.IGNORECASE)
_TAGS = {language: tag for tag, language in LANGUAGE.items()}


def as_tag(action: Execute | SeekHelp | Finish) -> str:
    """The action in tags. Code that holds tags or begins with a fence is fenced inside them."""
    match action:
        case Execute(language=language, code=code):
            if _NEEDS_A_FENCE.search(code):
                code = fenced(code, language)
            return f"<{_TAGS[language]}>\n{code}\n</{_TAGS[language]}>"
        case SeekHelp(request=request):
            parts = (f"<{name}>{getattr(request, name)}</{name}>" for name in _HELP)
            return "\n".join(["<seek_help>", *parts, "</seek_help>"])
        case Finish(reason=reason):
            return f"<finish>{reason}</finish>"


def as_call(action: Execute | SeekHelp | Finish, identifier: str) -> ToolCall:
    """The action as a native tool call."""
    match action:
        case Execute(language=language, code=code):
            name, values = _TAGS[language], [code]
        case SeekHelp(request=request):
            name, values = "seek_help", [getattr(request, part) for part in _HELP]
        case Finish(reason=reason):
            name, values = "finish", [reason]
    arguments = dict(zip(PARAMETERS[name], values, strict=True))
    return ToolCall(identifier, name, json.dumps(arguments, ensure_ascii=False))


_HELP = PARAMETERS["seek_help"]
