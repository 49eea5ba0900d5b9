"""The actions as native tools."""

from __future__ import annotations

from mle_ideator.actions import PARAMETERS
from mle_ideator.actions.calls import REQUIRED
from mle_ideator.messages import Tool

_TOOLS = {
    "execute_python": "Run Python code in the session's IPython kernel; variables stay.",
    "execute_bash": "Run a Bash script in the workspace.",
    "seek_help": "Ask the ideator for one idea. Say all three parts in full sentences.",
    "finish": "End the session. The best accepted solution is what counts.",
}
_PARAMETERS = {
    "code": "The code, whole and without a fence.",
    "problem": "What holds the score back.",
    "attempts": "What was tried, and what came of it.",
    "goal": "What an idea should achieve.",
    "reason": "Why it is time to end.",
}


def _tool(name: str) -> Tool:
    parameters = PARAMETERS[name]
    return Tool(
        name,
        _TOOLS[name],
        {
            "type": "object",
            "properties": {
                part: {"type": "string", "description": _PARAMETERS[part]} for part in parameters
            },
            "required": [part for part in parameters if part in REQUIRED],
            "additionalProperties": False,
        },
    )


TOOLS = tuple(map(_tool, PARAMETERS))
