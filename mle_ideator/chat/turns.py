"""Messages in the forms that APIs and chat templates ask for, and what models write around text."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from mle_ideator.messages import Message, Role, Tool, ToolCall

_OPEN, _CLOSE = "<think>", "</think>"


def joined(messages: Sequence[Message]) -> list[Message]:
    """Neighbours of the same role made one, as many chat templates refuse them.

    System messages after the first others become the user's. Tool messages stay apart: each answers
    its own call.
    """
    result: list[Message] = []
    for message in messages:
        role = _role(message, result)
        if result and role == result[-1].role != "tool":
            result[-1] = _merged(result[-1], message)
        else:
            result.append(msgspec.structs.replace(message, role=role))
    return result


def without_system(messages: Sequence[Message]) -> list[Message]:
    """For templates that know no system message: it goes in front of what the user says first."""
    roles = {"system": "user"}
    return joined([msgspec.structs.replace(m, role=roles.get(m.role, m.role)) for m in messages])


def as_turn(message: Message, arguments: Callable[[ToolCall], object]) -> dict[str, Any]:
    """In the form of Chat Completions, which templates read as well; only what a call's arguments
    are, a text or an object, is not the same for both."""
    turn: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.role == "tool":
        turn["tool_call_id"] = message.call_id
    if message.calls:
        turn["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": arguments(call)},
            }
            for call in message.calls
        ]
    return turn


def as_function(tool: Tool) -> dict[str, Any]:
    return {"type": "function", "function": msgspec.to_builtins(tool)}


def arguments_of(call: ToolCall) -> dict[str, object]:
    """A call's arguments; what is no JSON object is wrapped, as APIs take nothing else back."""
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        arguments = None
    return arguments if isinstance(arguments, dict) else {"unreadable": call.arguments}


def arguments_text(call: ToolCall) -> str:
    """The same as JSON, byte for byte as the model wrote it where that is an object."""
    arguments = arguments_of(call)
    return json.dumps(arguments) if "unreadable" in arguments else call.arguments


def split_reasoning(text: str) -> tuple[str, str]:
    """What a local model thought before it answered, and the answer.

    Some templates begin `<think>` for the model, so that only its end is in the text; a text cut
    at its limit may have no end.
    """
    begun = text.lstrip().startswith(_OPEN)
    thought, closed, answer = text.partition(_CLOSE)
    if not begun and (not closed or _OPEN in thought):
        return "", text
    return thought.lstrip().removeprefix(_OPEN).strip(), answer.lstrip("\n")


def _role(message: Message, before: Sequence[Message]) -> Role:
    late = message.role == "system" and any(m.role != "system" for m in before)
    return "user" if late else message.role


def _merged(first: Message, second: Message) -> Message:
    return msgspec.structs.replace(
        first,
        text="\n\n".join(text for text in (first.text, second.text) if text),
        calls=first.calls + second.calls,
        stable=second.stable,
    )
